package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// keyScopeOf returns how long a run of the workflow holds its unique key.
func keyScopeOf(wf *dsl.Workflow) naming.KeyScope {
	return naming.KeyScope{Scope: naming.Scope(wf.Unique.Scope), Retain: wf.Unique.Retain}
}

// replaces reports whether a submission must be submitted again, now as the replacement of the run
// `res`. The store has made no new run, because `res` holds the unique key of the submission.
//
// The parameter `by` is the name that the caller gave to the submitted run. The result is false if
// `res` has this name, because then the same run was submitted before. The result is also false if
// the submitted run is an heir, because an heir replaces no run.
func replaces(wf *dsl.Workflow, by string, names *naming.Names, res store.Submitted) bool {
	return wf.Unique.Replace && names.From == 0 && res.Exists && !res.Gone && (by == "" || res.Name != by)
}

// replacement returns the message that cancels the runs which a new run replaces. It is not sealed,
// because it holds no value of a run, and because only the store knows to which runs it goes.
func replacement(s Request, st *owner.Start) (*store.Message, error) {
	by := cmp.Or(s.By, starterOfKeys)
	data, err := journal.EncodeOpen(machine.CancelRequested{By: by, Code: naming.CodeReplaced,
		Reason: fmt.Sprintf("run %s replaces it (unique with on_conflict = %q)", st.Public, "replace")})
	if err != nil {
		return nil, err
	}
	return &store.Message{Kind: store.MessageVerb, By: by, Dedup: "replaced", Data: data}, nil
}

// starterOfKeys is the field By of the message that cancels replaced runs, if the submission names
// no person.
const starterOfKeys = "unique"

// heldKey returns a *refusal.KeyError if a submission must be refused because another run holds its
// key. It returns nil if the submission attaches to that run. The parameter `by` is the name that
// the caller gave to the submitted run. If that run has this name, the same run was submitted
// before.
func heldKey(ctx context.Context, s store.Store, wf *dsl.Workflow, by string, names *naming.Names, res store.Submitted) error {
	if !res.Exists || by != "" && res.Name == by || !res.Gone && !wf.Unique.Reject && !wf.Unique.Replace {
		return nil
	}
	return HeldBy(ctx, s, names.Workflow, names.Key, res)
}

// keyTaken returns a *refusal.KeyError if a run holds the key now, or if an open run waits for it.
// The parameter `key` is "" if the workflow has no unique key.
func keyTaken(ctx context.Context, s store.Store, workflow, key string) error {
	g, err := goals.Find(ctx, s, workflow, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("ask which run holds the unique key: %w", err)
	case !g.Held():
		return nil
	}
	e := &refusal.KeyError{Workflow: workflow, Key: key, Run: g.Name, Gone: g.Gone, State: g.State, Ever: g.KeyScope.Scope == naming.ScopeEver}
	if g.RunState.Final() && g.State == goals.Open { // the run in g.Next waits, and gets the key next
		e.Run, e.Gone = g.NextName, false
	}
	return e
}

// HeldBy returns the error for a submission whose key is held by another run.
func HeldBy(ctx context.Context, s store.Store, workflow, key string, res store.Submitted) error {
	e := &refusal.KeyError{Workflow: workflow, Key: key, Run: res.Name, Gone: res.Gone}
	g, err := goals.Find(ctx, s, workflow, key)
	switch {
	case err == nil && g.Run == res.Run:
		e.State, e.Ever = g.State, g.KeyScope.Scope == naming.ScopeEver
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return errors.Join(e, err)
	}
	return e
}
