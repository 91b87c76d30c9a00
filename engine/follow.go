package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/story"
)

// Wait waits until a run has ended or needs a person, and returns its state. A run also needs a
// person if one of its child runs does: see Follow. Any engine may own the run. If the store does
// not answer, Wait asks again until ctx ends. It returns ErrNotFound if there is no such run, and a
// *RunError if this engine cannot read the run. It returns another error only if a later try would
// fail in the same way: see Follow.
func (n *Node) Wait(ctx context.Context, run status.RunID) (*machine.State, error) {
	for {
		if t := n.now(); t != nil {
			state, here, err := n.waitHere(ctx, t.Runs, run)
			if err != nil || state != nil {
				return state, err
			}
			// This engine lost the run during the wait: find out again which engine owns it.
			if here {
				continue
			}
		}
		return n.Follow(ctx, run, 0, nil, journal.FollowOptions{})
	}
}

// childPatience is how long waitHere waits before it asks whether a run starts child runs.
const childPatience = time.Second

// waitHere waits for a run that this engine owns. Its results are those of Scheduler.Wait. If the
// run is still open after childPatience and can have child runs, or if waitHere cannot find out
// whether it can, the result `here` is false. In this case the caller must use Follow to wait for
// the run, because only Follow asks whether a child run needs a person.
func (n *Node) waitHere(ctx context.Context, runs *owner.Scheduler, run status.RunID) (state *machine.State, here bool, err error) {
	short, cancel := context.WithTimeout(ctx, childPatience)
	defer cancel()
	state, here, err = runs.Wait(short, run)
	if ctx.Err() != nil || short.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
		return state, here, err
	}
	rows, err := n.cfg.Store.Runs(ctx, store.RunFilter{IDs: []status.RunID{run}})
	if err != nil || len(rows) == 0 {
		return nil, false, nil // Follow returns the error, or asks again
	}
	wf, err := n.shared.Defs.Workflow(ctx, cmp.Or(rows[0].Moved, rows[0].Workflow))
	if err != nil || wf.StartsChildren() {
		return nil, false, nil
	}
	return runs.Wait(ctx, run)
}

// Follow calls the function `fn` with a run's facts, in order, as soon as they are committed. Each
// call gets a list of facts; its argument `first` is the number of the first fact in the list.
// Follow begins with the fact whose number is `from`; 1 = the first fact of the run. When the run
// has ended or needs a person, Follow returns its state. Any engine may own the run. fn may be nil.
// Follow ignores opts.Hint: it uses a channel on which the node reports new rows of the run.
//
// A run also needs a person if a child run, at any depth, is parked, or if the compensation of a
// child run has failed: the run waits for the child. In this case the state that Follow returns is
// still open, such as running, and opts.Through gets the child run. Follow asks for such child runs
// at most once a second, and only while a call of the run is in flight.
//
// If the store does not answer, Follow asks again with a growing pause until ctx ends. If reading
// fails, Follow returns the error only if a later try would fail in the same way. Such errors are
// ErrNotFound, ErrDamaged, a *SchemaError, a *LossError and a *KeyError. A *RunError, or another
// error of package journal, says that this engine cannot read the stored run.
func (n *Node) Follow(ctx context.Context, run status.RunID, from int, fn func(first int, facts []story.Fact), opts journal.FollowOptions) (*machine.State, error) {
	hint, done := n.shared.Followers.Follow(run)
	defer done()
	opts.Hint = hint
	if opts.Poll <= 0 {
		opts.Poll = n.cfg.Options.Poll
	}
	if opts.RetryStore <= 0 {
		opts.RetryStore = n.cfg.Options.RetryStore
	}
	return journal.Reader{Store: n.cfg.Store, Sealer: n.cfg.Sealer, Defs: n.shared.Defs}.Follow(ctx, run, from, fn, opts)
}

// AwaitReplies waits until the replies of a run to a webhook or an agent are delivered. It returns
// the error of ctx if ctx ends first. It does not wait for replies in a queue. It does not wait for
// the replies of states that the run reaches later.
func (n *Node) AwaitReplies(ctx context.Context, run store.RunRow) error {
	box, ok := replies.Of(n.cfg.Store)
	if !ok {
		return nil
	}
	for {
		list, err := box.OfRun(ctx, run.Run)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(r replies.Reply) bool { return !r.Done && !strings.HasPrefix(r.Sink, replies.Table) }) {
			return nil
		}
		if err := wait.For(ctx, n.cfg.Options.MinScan/4); err != nil {
			return err
		}
	}
}

// AwaitNotifications waits until each notification of a run has ended or needs a person. It returns
// the error of ctx if ctx ends first. The caller calls it after the run has reached the states that
// have to be announced: AwaitNotifications does not wait for the notices of later states.
func (n *Node) AwaitNotifications(ctx context.Context, run store.RunRow) error {
	for {
		sent, err := notice.Find(ctx, store.Complete(n.cfg.Store), run, nil)
		if err != nil {
			return err
		}
		open := slices.ContainsFunc(sent, func(s notice.Sent) bool {
			return !s.Done || slices.ContainsFunc(s.Notifications, func(r store.RunRow) bool { return !r.State.Final() && !r.State.NeedsHuman() })
		})
		if !open {
			return nil
		}
		if err := wait.For(ctx, n.cfg.Options.MinScan/4); err != nil {
			return err
		}
	}
}
