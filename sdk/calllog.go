package sdk

import (
	"context"
	"log/slog"
)

// A callLog is the slog.Handler of a call's logger. It adds the attributes run, step and attempt to
// each line. To save time, it prepares these attributes only when the action logs a line, because
// most calls log nothing.
type callLog struct {
	base slog.Handler
	run  string
	step string
	try  int
}

func (h *callLog) tagged() slog.Handler {
	return h.base.WithAttrs([]slog.Attr{slog.String("run", h.run), slog.String("step", h.step), slog.Int("attempt", h.try)})
}

// Enabled implements slog.Handler.
func (h *callLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.base.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *callLog) Handle(ctx context.Context, r slog.Record) error { return h.tagged().Handle(ctx, r) }

// WithAttrs implements slog.Handler.
func (h *callLog) WithAttrs(attrs []slog.Attr) slog.Handler { return h.tagged().WithAttrs(attrs) }

// WithGroup implements slog.Handler.
func (h *callLog) WithGroup(name string) slog.Handler { return h.tagged().WithGroup(name) }
