package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/children"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// submitChild submits a child run. It returns a *children.Refused if the child will never be
// accepted. After any other error the caller may try again.
func (n *Node) submitChild(ctx context.Context, o children.Order) (store.Submitted, error) {
	s := Submission{Workflow: o.Flow.Name, Vars: o.Vars, Name: o.Name, By: o.Parent.Name, child: &o}
	sub, err := n.Submit(ctx, s)
	var (
		down *unanswered
		open *owner.OpenOutcome
	)
	switch {
	case err == nil:
	case errors.As(err, &down), errors.As(err, &open), owner.OverFor(err), errors.Is(err, ErrStopping), ctx.Err() != nil, sub.Run != 0:
	default:
		err = &children.Refused{Code: children.CodeRefused, Err: err}
	}
	return sub, err
}

// flow returns the workflow of the run; nil = there is none with this name.
func (s *Submission) flow() *dsl.Workflow {
	if s.child != nil {
		return s.child.Flow
	}
	return s.Definition.Workflow(s.Workflow)
}

// names returns the names of the run. Its unique key is not known yet.
func (s *Submission) names() naming.Names {
	names := naming.Names{Workflow: s.Workflow, Name: s.Name}
	if s.child != nil {
		names.Parent = s.child.Parent.Run
	}
	return names
}

// started returns the event that starts the run.
func (s *Submission) started(run status.RunID, st *owner.Start) machine.Started {
	ev := machine.Started{RunID: run, Name: st.Public, Key: st.Names.Key, Vars: s.Vars, Trigger: "manual", StartedBy: s.By}
	if o := s.child; o != nil {
		ev.Trigger, ev.Parent, ev.Until, ev.Void = "parent", o.Parent, o.Until, o.Void
	}
	return ev
}

// workflowIDs stores the definition of the run, if it is not stored yet. It returns the ids of the
// workflows of the definition, by name. The definition of a child run is that of its parent, which
// is stored.
func (n *Node) workflowIDs(ctx context.Context, s Submission) (map[string]store.WorkflowID, error) {
	if s.child == nil {
		return n.shared.Defs.Put(ctx, s.Definition)
	}
	ids, err := n.shared.Defs.Family(ctx, s.child.Flow.Digest, func() (store.WorkflowID, error) {
		parent, err := store.Complete(n.cfg.Store).Run(ctx, s.child.Parent.Run)
		return parent.Workflow, err
	})
	if err != nil {
		return nil, fmt.Errorf("find the definition of the parent: %w", err)
	}
	return ids, nil
}

// void reports whether the run must begin no step. Such a run takes no unique key.
func (s *Submission) void() bool { return s.child != nil && s.child.Void }
