package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// maxHolders is the highest number of runs that a text about a limit names.
const maxHolders = 10

// An InLine describes the concurrency limit of a run that waits for a place.
type InLine struct {
	Line   line.Line
	Places naming.Places
}

// InLineOf returns the limit of a run that waits for a place; nil = the run does not wait for a
// place.
func InLineOf(ctx context.Context, s *session.Session, r *Run) (*InLine, error) {
	if run := r.State.Run(); !run.Awaits || run.State.Final() || run.Line.Limit == 0 {
		return nil, nil
	}
	line := r.State.Run().Line
	p, err := s.Store.Places(ctx, r.Row.WorkflowName, line.Key, maxHolders)
	if err != nil {
		return nil, s.Wrap("read which runs are open", err)
	}
	return &InLine{line, p}, nil
}

// Text names the limit, and the runs that hold its places.
func (r *InLine) Text() string {
	of := "concurrency"
	if r.Line.Key != "" {
		of += fmt.Sprintf(", key %q", r.Line.Key)
	}
	text := fmt.Sprintf("room in %s: %d of %d runs are open", of, r.Places.Taken, r.Line.Limit)
	names := r.Places.Open
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	if more := r.Places.Taken - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// JSON returns the same information as Text, for --json.
func (r *InLine) JSON() map[string]any {
	open := append([]string{}, r.Places.Open...)
	return map[string]any{"key": r.Line.Key, "limit": r.Line.Limit, "taken": r.Places.Taken, "open": open, "waiting": r.Places.Waiting}
}

// A KeyWait describes the unique key for which a replacement waits. Another run still holds this
// key.
type KeyWait struct {
	Key    string
	Holder string          // public name of the run that has the key
	State  status.RunState // state of that run
}

// KeyWaitOf returns the unique key for which a run waits; nil = the run does not wait for its key.
func KeyWaitOf(ctx context.Context, s *session.Session, r *Run) (*KeyWait, error) {
	run := r.State.Run()
	if !run.Awaits || run.State.Final() || run.Key == "" {
		return nil, nil
	}
	g, err := goals.Find(ctx, s.Store, r.Row.WorkflowName, run.Key)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && g.Next != r.Row.Run:
		return nil, nil
	case err != nil:
		return nil, s.Wrap("read which run has the key", err)
	}
	return &KeyWait{run.Key, render.Clean(g.Name), g.RunState}, nil
}

// Text says for which key the run waits, and which run holds the key.
func (k *KeyWait) Text() string {
	return fmt.Sprintf("its unique key %q: run %s has it and is %s", render.Clean(k.Key), k.Holder, k.State)
}

// JSON returns the same information as Text, for --json.
func (k *KeyWait) JSON() map[string]any {
	return map[string]any{"key": k.Key, "run": k.Holder, "status": k.State.String()}
}
