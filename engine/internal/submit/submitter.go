package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/internal/children"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

// Runs is the part of a membership that takes new runs. An *owner.Scheduler implements Runs.
type Runs interface {
	// Submit stores a new run and makes the engine its owner: see owner.Scheduler.
	Submit(ctx context.Context, st *owner.Start, at time.Time, e machine.Started) error
}

// Sinks are the webhooks to which an engine sends replies.
type Sinks interface {
	// Check returns an error if the engine does not send to the sink.
	Check(sink string) error
}

// A Submitter submits runs to the present membership of an engine.
type Submitter struct {
	*Maker
	Sinks Sinks // nil = the engine sends nothing to webhooks
	// Present waits for a membership that accepts work, and returns its runs. It returns
	// owner.ErrStopping if the engine is stopping.
	Present func(ctx context.Context) (Runs, error)
}

// Submit submits a run. See engine.Node.Submit, which is the same for callers outside of the
// engine.
func (u *Submitter) Submit(ctx context.Context, s Request) (store.Submitted, error) {
	if _, given := naming.ParseRunName(s.Name); given {
		return u.again(ctx, s)
	}
	if err := u.sendable(s); err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	st, err := u.prepare(ctx, s)
	if err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	failpoint.Hit("submit.prepared")
	for waits, replaced, try := false, false, 0; try < IDTries; try++ {
		runs, err := u.Present(ctx)
		if err != nil {
			return store.Submitted{}, err
		}
		res, err := u.submit(ctx, runs, s, *st, waits, replaced)
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
			return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, fullError(ctx, u.cfg.Store, st, s.Child != nil, err))
		case !errors.Is(err, store.ErrExists):
			return res, err
		}
	}
	return store.Submitted{}, fmt.Errorf("submit %q: no free run id in %d tries", s.Workflow, IDTries)
}

// sendable returns an error if this engine does not send replies to the sink of a submission.
func (u *Submitter) sendable(s Request) error {
	switch {
	case !strings.HasPrefix(s.ReplyTo, replies.Webhook):
		return nil
	case u.Sinks == nil:
		return fmt.Errorf("reply sink %q: this engine sends nothing to webhooks; start it with --reply-sinks FILE", s.ReplyTo)
	}
	return u.Sinks.Check(s.ReplyTo)
}

// errHeld says that another run holds the unique key of a submission. The caller must submit again,
// so that the new run replaces that run.
var errHeld = errors.New("engine: another run holds the key")

// submit chooses an id for the run and submits the run once. If the parameter `waits` is true and
// the run has a limit, the run waits in line. If the parameter `replaced` is true, the run replaces
// the run that holds its unique key, and waits for the end of that run. The method submit returns
// ErrExists if another run has this id, and ErrFull if the run gets no place in its limit. It
// returns errHeld if the caller must submit again with `replaced` true, and ErrFree if the caller
// must submit again with `replaced` false.
func (u *Submitter) submit(ctx context.Context, runs Runs, s Request, st owner.Start, waits, replaced bool) (store.Submitted, error) {
	now := u.cfg.Clock.Now()
	run, err := u.AssignID(s, &st, now)
	if err == nil && replaced {
		st.Replaces, err = replacement(s, &st)
	}
	if err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	err = runs.Submit(ctx, &st, now, s.started(run, &st, waits))
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
	if err := heldKey(ctx, u.cfg.Store, st.Flow, s.Name, &st.Names, st.Submitted); err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	return st.Submitted, nil
}

// Child submits a child run. It returns a *children.Refused if the child will never be
// accepted. After any other error the caller may try again.
func (u *Submitter) Child(ctx context.Context, o children.Order) (store.Submitted, error) {
	s := Request{Workflow: o.Flow.Name, Vars: o.Vars, Name: o.Name, By: o.ParentName, Priority: o.Priority, Child: &o}
	sub, err := u.Submit(ctx, s)
	var (
		down *Unanswered
		open *owner.OpenOutcome
		held *refusal.KeyError
	)
	switch {
	case err == nil:
	case errors.As(err, &held):
		err = &children.Refused{Code: children.CodeKeyTaken, Err: err}
	case errors.As(err, &down), errors.As(err, &open), busy(err), owner.OverFor(err), errors.Is(err, owner.ErrStopping), ctx.Err() != nil, sub.Run != 0:
	case errors.Is(err, naming.ErrFull):
		err = &children.Refused{Code: children.CodeNoRoom, Err: err}
	default:
		err = &children.Refused{Code: children.CodeRefused, Err: err}
	}
	return sub, err
}
