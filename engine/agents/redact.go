package agents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// redacted stands in logs for what must not be read there.
const redacted = "(sensitive)"

// minRedacted is the shortest text that is looked for: shorter ones are found
// everywhere.
const minRedacted = 4

// redact returns a handler that replaces the texts wherever they appear. It is
// a second net: agents should not log secrets.
func redact(h slog.Handler, texts []string) slog.Handler {
	if len(texts) == 0 {
		return h
	}
	return &redactor{next: h, replace: replacer(texts).Replace}
}

func replacer(texts []string) *strings.Replacer {
	var pairs []string
	for _, t := range texts {
		if len(t) >= minRedacted {
			pairs = append(pairs, t, redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}

type redactor struct {
	next    slog.Handler
	replace func(string) string
}

// Enabled asks the next handler.
func (r *redactor) Enabled(ctx context.Context, level slog.Level) bool {
	return r.next.Enabled(ctx, level)
}

// Handle passes a redacted copy on.
func (r *redactor) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, r.replace(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(r.attr(a))
		return true
	})
	return r.next.Handle(ctx, out)
}

// WithAttrs redacts the attributes.
func (r *redactor) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, r.attr(a))
	}
	return &redactor{next: r.next.WithAttrs(out), replace: r.replace}
}

// WithGroup opens a group in the next handler.
func (r *redactor) WithGroup(name string) slog.Handler {
	return &redactor{next: r.next.WithGroup(name), replace: r.replace}
}

func (r *redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.replace(v.String()))
	case slog.KindAny:
		// Whatever it is, it is shown as text that can be searched.
		return slog.String(a.Key, r.replace(fmt.Sprint(v.Any())))
	case slog.KindGroup:
		var in []any
		for _, g := range v.Group() {
			in = append(in, r.attr(g))
		}
		return slog.Group(a.Key, in...)
	}
	return a
}
