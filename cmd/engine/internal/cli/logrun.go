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

// runNames holds the public names of runs for log lines. It also holds the run that a view shows:
// the view itself shows the alerts of this run, so the log leaves them out. Until it is known which
// run the view shows, up to 1,000 alerts wait and are not logged.
type runNames struct {
	mu      sync.Mutex // protects all other fields
	names   map[status.RunID]string
	shown   string // public name of the run that the view shows; "" = none
	waiting bool   // a view is about to show a run
	alerts  []func()
}

// Expect makes alerts wait until the method Follow or Release is called.
func (s *runNames) Expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = true
}

// Follow records which run the view shows, and writes the waiting alerts of other runs.
func (s *runNames) Follow(row store.RunRow) {
	s.Name(row)
	s.mu.Lock()
	s.shown = row.Name
	s.mu.Unlock()
	s.flush()
}

// Release records that the view shows no run now, and writes all waiting alerts.
func (s *runNames) Release() {
	s.mu.Lock()
	s.shown = ""
	s.mu.Unlock()
	s.flush()
}

// flush writes the alerts that have waited, except for the alerts of the run that the view shows.
func (s *runNames) flush() {
	s.mu.Lock()
	alerts := s.alerts
	s.alerts, s.waiting = nil, false
	s.mu.Unlock()
	for _, write := range alerts {
		write()
	}
}

// Name stores the public names of runs.
func (s *runNames) Name(rows ...store.RunRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		s.names[r.Run] = r.Name
	}
}

// Knows reports whether the public name of a run is known.
func (s *runNames) Knows(run status.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.names[run]
	return ok
}

// NameOf returns the public name of a run, or its id if the name is not known. Commands accept
// the name and the id.
func (s *runNames) NameOf(run status.RunID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.names[run]; ok {
		return render.Clean(name)
	}
	return naming.RunName(run)
}

// public replaces a run id in a log line by the public name of the run, if that name is known.
// `engine show` accepts the name and the id.
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

// keep returns false if the caller must write an alert to the log now. It returns true if the
// view shows the alert, or if the alert has to wait. If it has to wait, keep stores the function
// `write`, and the method `flush` calls it later.
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

// A runHandler is a log handler that leaves out the alerts that a view shows.
type runHandler struct {
	slog.Handler
	runs *runNames
}

// Handle writes the record r. It leaves out an alert that the view shows. If an alert has to wait,
// the method `flush` writes it later.
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
		// If the alert has to wait, the method `keep` stores this function. A later call of the
		// function writes the alert. An error of that write cannot be reported.
		if h.runs.keep(run, func() { _ = h.Handle(context.WithoutCancel(ctx), again) }) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a runHandler whose inner handler has the attributes.
func (h runHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return runHandler{h.Handler.WithAttrs(attrs), h.runs}
}

// WithGroup returns a runHandler whose inner handler has the group.
func (h runHandler) WithGroup(name string) slog.Handler {
	return runHandler{h.Handler.WithGroup(name), h.runs}
}
