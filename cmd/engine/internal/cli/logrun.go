package cli

import (
	"context"
	"log/slog"
	"sync"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// runNames is what log lines know of runs: their public names, and which one
// a view shows. An alert about that one is told by the view; before it is known
// which one that is, alerts wait.
type runNames struct {
	mu      sync.Mutex // protects following fields
	names   map[status.RunID]string
	shown   string // public name; "" = none
	waiting bool   // a view is about to show a run
	alerts  []func()
}

// Expect makes alerts wait until follow or release is called.
func (s *runNames) Expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = true
}

// Follow says which run the view shows.
func (s *runNames) Follow(row store.RunRow) {
	s.Name(row)
	s.mu.Lock()
	s.shown = row.Name
	s.mu.Unlock()
	s.flush()
}

// Release says that no view shows anything any more.
func (s *runNames) Release() {
	s.mu.Lock()
	s.shown = ""
	s.mu.Unlock()
	s.flush()
}

// flush lets the alerts go that have waited; each decides anew.
func (s *runNames) flush() {
	s.mu.Lock()
	alerts := s.alerts
	s.alerts, s.waiting = nil, false
	s.mu.Unlock()
	for _, write := range alerts {
		write()
	}
}

// Name notes the public names of runs.
func (s *runNames) Name(rows ...store.RunRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		s.names[r.Run] = r.Name
	}
}

// NameOf is the public name of a run, as far as it is known. Commands know the
// other one too.
func (s *runNames) NameOf(run status.RunID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.names[run]; ok {
		return render.Clean(name)
	}
	return naming.RunName(run)
}

// public replaces an internal run id by the public name if it is known; either
// is good for `engine show`.
func (s *runNames) public(_ []string, a slog.Attr) slog.Attr {
	id, ok := a.Value.Any().(status.RunID)
	if !ok {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.names[id]; ok {
		a.Value = slog.StringValue(name)
	}
	return a
}

// keep reports whether an alert is not to be written now: the view tells it,
// or it waits, to be written by write.
func (s *runNames) keep(run slog.Value, write func()) bool {
	const most = 1000
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting && len(s.alerts) < most {
		s.alerts = append(s.alerts, write)
		return true
	}
	name := run.String()
	if id, ok := run.Any().(status.RunID); ok {
		name = s.names[id]
	}
	return !s.waiting && s.shown != "" && s.shown == name
}

// A runHandler leaves out alerts that a view tells.
type runHandler struct {
	slog.Handler
	runs *runNames
}

// Handle writes the record unless it is an alert that the view tells.
func (h runHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "alert" {
		var run slog.Value
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "run" {
				run = a.Value
			}
			return true
		})
		again := r.Clone()
		if h.runs.keep(run, func() { _ = h.Handle(context.WithoutCancel(ctx), again) }) { // a log that cannot be written has nobody to tell
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the handler around the new one.
func (h runHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return runHandler{h.Handler.WithAttrs(attrs), h.runs}
}

// WithGroup keeps the handler around the new one.
func (h runHandler) WithGroup(name string) slog.Handler {
	return runHandler{h.Handler.WithGroup(name), h.runs}
}
