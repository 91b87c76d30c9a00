package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/children"
	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// submitIDs is the largest number of internal ids that are tried for one submission.
const submitIDs = 8

// Submit accepts a run. The run and all its steps are in the store before any step starts
// (S14), and this engine owns the run. If the name is in use, or an open run has the same
// unique key, Submit stores nothing and returns the earlier run with Exists set. Submit refuses
// a submission if an expression of its workflow fails with the variables of the submission.
//
// After an error it may be unknown whether the run was accepted. It is safe to submit the run
// again with the same name or unique key. If Submit returns an error and also a Run other than 0,
// the store did not answer: it may have stored the run with this Run and Name.
func (n *Node) Submit(ctx context.Context, s Submission) (store.Submitted, error) {
	if _, given := naming.ParseRunName(s.Name); given {
		return n.again(ctx, s)
	}
	if err := sendable(n.cfg, s); err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	st, err := n.prepare(ctx, s)
	if err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	failpoint.Hit("submit.prepared")
	for waits, replaced, try := false, false, 0; try < submitIDs; try++ {
		t, err := n.present(ctx)
		if err != nil {
			return store.Submitted{}, err
		}
		if n.shared.Draining.Load() {
			return store.Submitted{}, ErrStopping
		}
		res, err := n.submit(ctx, t, s, *st, waits, replaced)
		switch {
		case errors.Is(err, errHeld): // submit again, to replace the run that holds the key
			replaced = true
			failpoint.Hit("key.held")
		case errors.Is(err, naming.ErrFree): // the run that held the key has ended meanwhile
			replaced = false
			try--
		case errors.Is(err, naming.ErrFull) && !st.Flow.Concurrency.Reject && !waits:
			waits = true // submit again, so that the run waits in line
		case errors.Is(err, naming.ErrFull):
			return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, fullError(ctx, n.cfg.Store, st, s.child != nil, err))
		case !errors.Is(err, store.ErrExists):
			return res, err
		}
	}
	return store.Submitted{}, fmt.Errorf("submit %q: no free run id in %d tries", s.Workflow, submitIDs)
}

// again handles a submission whose name has the form of a run id. Only engines assign such
// names, so the run must exist already. again returns that run with Exists set, or an error.
func (n *Node) again(ctx context.Context, s Submission) (store.Submitted, error) {
	run, err := store.Complete(n.cfg.Store).Find(ctx, s.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = naming.Names{Name: s.Name}.Validate()
	case err != nil:
		err = &unanswered{err}
	}
	if err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	return store.Submitted{Run: run.Run, Name: run.Name, Exists: true}, nil
}

// prepare checks a submission, stores its definition, and evaluates the configurations of its
// agents. It returns what is needed to start the run.
func (n *Node) prepare(ctx context.Context, s Submission) (*owner.Start, error) {
	wf := s.flow()
	if wf == nil || wf.Notifies != "" { // only an engine starts notifications
		return nil, fmt.Errorf("the definition holds no such workflow")
	}
	if size := len(s.Vars.JSON()); size > n.cfg.Options.MaxValue {
		return nil, fmt.Errorf("the variables have %d bytes, more than the %d allowed", size, n.cfg.Options.MaxValue)
	}
	if err := replyable(n.cfg, s, wf); err != nil {
		return nil, err
	}
	line, err := lineOf(wf, s.Vars, s.Priority)
	if err != nil {
		return nil, err
	}
	if s.void() {
		line.Limit = 0 // a run that begins no step needs no place
	}
	specs, err := n.shared.Specs.Specs(wf, s.Vars)
	if err != nil {
		return nil, err
	}
	hidden := confidential(wf, s.Vars, specs)
	// A notification must not fail later because the encryption key is missing.
	for _, block := range wf.Notify {
		own, err := n.shared.Specs.Specs(block.Flow, s.Vars)
		if err != nil {
			return nil, err
		}
		hidden = hidden || confidential(block.Flow, s.Vars, own)
	}
	if n.cfg.Sealer == nil && hidden {
		return nil, &crypt.KeyError{Hint: crypt.HintMakeKey}
	}
	ids, err := n.workflowIDs(ctx, s)
	if err != nil {
		return nil, &unanswered{err}
	}
	return &owner.Start{Workflow: ids[s.Workflow], Flow: wf, Specs: specs, Names: s.names(), Line: line, Past: s.past}, nil
}

// An unanswered error is an error of the store. The submission itself may be valid.
type unanswered struct{ error }

// Unwrap returns the cause.
func (u *unanswered) Unwrap() error { return u.error }

// confidential reports whether a run may hold data that must be encrypted. A sensitive variable
// is enough. A secret in an agent's configuration is enough, too: the agent may repeat the secret
// in a reply, when it is too late to ask for an encryption key.
func confidential(wf *dsl.Workflow, vars dsl.Value, specs map[string]invoke.AgentSpec) bool {
	for _, step := range wf.Steps {
		if step.Child != nil && confidential(step.Child.Workflow, dsl.Value{}, nil) {
			return true
		}
	}
	for _, block := range wf.Notify {
		if confidential(block.Flow, dsl.Value{}, nil) {
			return true
		}
	}
	if wf.Confidential || len(vars.Sensitive()) > 0 {
		return true
	}
	for _, spec := range specs {
		if len(spec.Config.Secrets()) > 0 || len(spec.Config.Sensitive()) > 0 {
			return true
		}
	}
	return false
}

// errHeld says that another run holds the unique key of a submission. The caller must submit again,
// so that the new run replaces that run.
var errHeld = errors.New("engine: another run holds the key")

// submit chooses an id for the run and submits the run once. If the parameter `waits` is true and the
// run has a limit, the run waits in line. If the parameter `replaced` is true, the run replaces the run
// that holds its unique key, and waits for the end of that run. The method submit returns ErrExists
// if another run has this id, and ErrFull if the run gets no place in its limit. It returns errHeld
// if the caller must submit again with `replaced` true, and ErrFree if it must do so with false.
func (n *Node) submit(ctx context.Context, t *cluster.Membership, s Submission, st owner.Start, waits, replaced bool) (store.Submitted, error) {
	now := n.shared.Clock.Now()
	run, err := n.assignID(s, &st, now)
	if err == nil && replaced {
		st.Replaces, err = replacement(s, &st)
	}
	if err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	err = t.Runs.Submit(ctx, &st, now, s.started(run, &st, waits))
	switch {
	case errors.Is(err, store.ErrExists), errors.Is(err, naming.ErrFull), errors.Is(err, naming.ErrFree):
		return store.Submitted{}, err
	case err == nil && !replaced && replaces(st.Flow, s.Name, &st.Names, st.Submitted):
		return store.Submitted{}, errHeld
	case err != nil:
		var (
			sent store.Submitted
			open *owner.OpenOutcome
		)
		if owner.OverFor(err) || ctx.Err() != nil || errors.As(err, &open) {
			sent = store.Submitted{Run: run, Name: st.Public}
		}
		return sent, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	if err := heldKey(ctx, n.cfg.Store, st.Flow, s.Name, &st.Names, st.Submitted); err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	return st.Submitted, nil
}

// assignID chooses an internal id for a run and returns it. It sets the public name, the
// unique key and the checks in st. It returns an error if one of them or the deadline cannot be
// evaluated, or if a name is not valid.
func (n *Node) assignID(s Submission, st *owner.Start, now time.Time) (status.RunID, error) {
	run, err := n.ids.Next(now)
	if err != nil {
		return 0, err
	}
	st.Public = st.Names.Public(run)
	scope := &dsl.Scope{
		Run:  dsl.RunInfo{ID: st.Public, Workflow: st.Flow.Name, StartedAt: now, Trigger: s.trigger},
		Vars: s.Vars,
	}
	if st.Flow.UniqueKey != nil && !s.void() {
		if st.Names.Key, err = st.Flow.UniqueKey(scope); err != nil {
			return 0, fmt.Errorf("evaluate unique.key: %w", err)
		}
		if st.Names.Key == "" {
			return 0, errors.New("unique.key is empty")
		}
		st.Names.KeyScope = holdOf(st.Flow)
	}
	scope.Run.Key = st.Names.Key
	if !s.void() {
		if st.Checks, err = checksOf(st.Flow, scope); err != nil {
			return 0, err
		}
	}
	if st.Flow.Deadline != nil {
		if _, err := st.Flow.Deadline(scope); err != nil {
			return 0, fmt.Errorf("evaluate deadline: %w", err)
		}
	}
	return run, st.Names.Validate()
}

// submitChild submits a child run. It returns a *children.Refused if the child will never be
// accepted. After any other error the caller may try again.
func (n *Node) submitChild(ctx context.Context, o children.Order) (store.Submitted, error) {
	s := Submission{Workflow: o.Flow.Name, Vars: o.Vars, Name: o.Name, By: o.ParentName, Priority: o.Priority, child: &o}
	sub, err := n.Submit(ctx, s)
	var (
		down *unanswered
		open *owner.OpenOutcome
		held *KeyError
	)
	switch {
	case err == nil:
	case errors.As(err, &held):
		err = &children.Refused{Code: children.CodeKeyTaken, Err: err}
	case errors.As(err, &down), errors.As(err, &open), busy(err), owner.OverFor(err), errors.Is(err, ErrStopping), ctx.Err() != nil, sub.Run != 0:
	case errors.Is(err, naming.ErrFull):
		err = &children.Refused{Code: children.CodeNoRoom, Err: err}
	default:
		err = &children.Refused{Code: children.CodeRefused, Err: err}
	}
	return sub, err
}

// workflowIDs stores the definition of the run, if it is not stored yet. It returns the ids of the
// workflows of the definition, by name. A child run has the definition that its parent had when the
// call for the child began. This definition is stored already.
func (n *Node) workflowIDs(ctx context.Context, s Submission) (map[string]store.WorkflowID, error) {
	if s.child == nil {
		return n.shared.Defs.Put(ctx, s.Definition)
	}
	digest := s.child.Flow.Digest
	ids, err := n.shared.Defs.Family(ctx, digest, func() (store.WorkflowID, error) { return n.parentWorkflow(ctx, s.child.Parent, digest) })
	if err != nil {
		return nil, fmt.Errorf("find the definition of the parent: %w", err)
	}
	return ids, nil
}

// parentWorkflow returns the id of the workflow that a run had while it had the definition with the given
// digest. The row of the run has the first of its workflows. The run got the others by moves (engine
// migrate), and only its journal has them.
func (n *Node) parentWorkflow(ctx context.Context, run status.RunID, digest string) (store.WorkflowID, error) {
	full, defs := store.Complete(n.cfg.Store), n.shared.Defs
	row, err := full.Run(ctx, run)
	if err != nil {
		return 0, err
	}
	if wf, err := defs.Workflow(ctx, row.Workflow); err != nil || wf.Digest == digest {
		return row.Workflow, err
	}
	told, err := journal.LoadState(ctx, full, n.cfg.Sealer, defs, run)
	if err != nil {
		return 0, err
	}
	for _, m := range told.State.Run().Moves {
		id := store.WorkflowID(m.Workflow)
		if wf, err := defs.Workflow(ctx, id); err != nil || wf.Digest == digest {
			return id, err
		}
	}
	return 0, fmt.Errorf("run %s never had definition %.12s", row.Name, digest)
}
