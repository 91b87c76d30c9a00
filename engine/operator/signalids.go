package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// This file looks for the run that has accepted a signal with a given id. If a run, or any of its
// groups, has accepted a signal, a second signal with the same id changes nothing in the run and in
// its groups.

// page is how many rows or messages are read at a time.
const page = 1000

// isGroup reports whether the workflow with the given name is a group of the workflow `around`. A
// workflow of a library may have such a name, too, so the steps decide. Only if no step starts the
// workflow, because the run was moved to a definition without it, the name decides.
func isGroup(name string, around *dsl.Workflow) bool {
	for _, step := range around.Steps {
		if step.Child != nil && step.Child.Workflow.Name == name {
			return step.Child.Group
		}
	}
	return strings.HasPrefix(name, around.Name+".")
}

// known looks for a run of a group, at any depth below the run r, that knows the id of a signal. It
// reads all child runs of r from the store, also child runs that r started before it was retried.
func (o *Operator) known(ctx context.Context, r journal.Run, id, signal string) (to Receiver, found bool, err error) {
	other := map[string]bool{} // workflows of child runs that cannot know the id
	for _, step := range r.Flow.Steps {
		if step.Child != nil && !step.AwaitsInside(signal) {
			other[step.Child.Workflow.Name] = true
		}
	}
	for after := status.RunID(0); ; {
		rows, err := store.Complete(o.Store).Runs(ctx, store.RunFilter{Parent: r.Head.Run, After: after, Limit: page})
		if err != nil {
			return Receiver{}, false, fmt.Errorf("read the child runs of %s: %w", r.Head.Name, err)
		}
		for _, row := range rows {
			after = row.Run
			if other[row.WorkflowName] || !isGroup(row.WorkflowName, r.Flow) {
				continue
			}
			child, err := journal.LoadState(ctx, store.Complete(o.Store), o.Sealer, o.Defs, row.Run)
			if err != nil {
				return Receiver{}, false, err
			}
			if to, found, err = o.knows(ctx, child, id); err != nil || found {
				return to, found, err
			}
			if to, found, err = o.known(ctx, child, id, signal); err != nil || found {
				return to, found, err
			}
		}
		if len(rows) < page {
			return Receiver{}, false, nil
		}
	}
}

// knownAround looks for a run that knows the id of a signal, if r is the run of a group. It looks
// at the parent of r, at the parent of the parent, and so on, until it reaches a run that is not
// the run of a group. If r is not the run of a group, knownAround finds nothing.
func (o *Operator) knownAround(ctx context.Context, r journal.Run, id string) (to Receiver, found bool, err error) {
	for r.State.Run().Parent.Run != 0 {
		around, err := journal.LoadState(ctx, store.Complete(o.Store), o.Sealer, o.Defs, r.State.Run().Parent.Run)
		if errors.Is(err, store.ErrNotFound) { // the run was removed
			return Receiver{}, false, nil
		}
		if err != nil {
			return Receiver{}, false, err
		}
		if !isGroup(r.Flow.Name, around.Flow) {
			return Receiver{}, false, nil
		}
		if to, found, err = o.knows(ctx, around, id); err != nil || found {
			return to, found, err
		}
		r = around
	}
	return Receiver{}, false, nil
}

// knows reports whether the run r has accepted a signal with this id. If the run is open, knows
// also returns true for such a signal in its inbox.
func (o *Operator) knows(ctx context.Context, r journal.Run, id string) (to Receiver, found bool, err error) {
	to = Receiver{Run: r.Head.Run, Name: r.Head.Name, Known: story.KnowsSignal(r.State, id)}
	if to.Known || r.Head.State.Final() {
		return to, to.Known, nil
	}
	found, err = o.waits(ctx, r.Head.Run, id)
	return to, found, err
}

// waits reports whether a signal with this id waits in the inbox of a run.
func (o *Operator) waits(ctx context.Context, run status.RunID, id string) (bool, error) {
	for after := store.MessageID(0); ; {
		list, err := o.Store.Messages(ctx, run, after, page)
		if err != nil {
			return false, fmt.Errorf("read the inbox of run %s: %w", naming.RunName(run), err)
		}
		for _, m := range list {
			after = m.ID
			if m.Kind != store.MessageVerb {
				continue
			}
			e, err := journal.DecodeMessage(o.Sealer, run, m.Data)
			if err != nil {
				return false, err
			}
			if s, ok := e.(machine.SignalReceived); ok && s.ID == id {
				return true, nil
			}
		}
		if len(list) < page {
			return false, nil
		}
	}
}
