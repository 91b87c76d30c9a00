package owner

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/store"
)

// A committer takes transitions, and gives each of them to its receiver once the store
// has answered. Commit blocks while the committer is full. It returns an error if this
// membership ends; then the receiver gets nothing.
type committer interface {
	Commit(ctx context.Context, it *commit.Item) error
}

// inARow is how many tasks a shard does before it gives their transitions to the
// committer. If the first transition woke the committer, the committer would compete for
// a CPU, and each batch would hold few transitions.
const inARow = 64

// An outbox collects the transitions that a shard has decided, and counts those that the
// store has not answered. Only the shard's goroutine uses it.
type outbox struct {
	to      committer
	back    commit.Receiver // gets the answers
	turn    *turn           // of the shard, which does not count as stuck while it waits for the store
	items   []*commit.Item  // for the committer
	commits int             // on their way, and writes that a run waits for
	idle    []chan struct{} // closed when no commit is on its way and no task waits
}

// add takes a transition for the next flush.
func (o *outbox) add(it *commit.Item) {
	it.To = o.back
	o.items = append(o.items, it)
	o.commits++
}

// flush gives the collected transitions to the committer. It blocks while the committer
// is full: a slow store slows deciding down that way. After an error the membership ends,
// and no caller waits for the rest.
func (o *outbox) flush(ctx context.Context) {
	if len(o.items) == 0 {
		return
	}
	o.turn.end()
	now := time.Now()
	for i, it := range o.items {
		it.Queued = now
		_ = o.to.Commit(ctx, it)
		o.items[i] = nil
	}
	o.items = o.items[:0]
}

// commitRow has a row committed at once that is not decided from events. done is called
// by the shard's goroutine. It returns false if this membership ends: then done is not
// called.
func (o *outbox) commitRow(ctx context.Context, t store.Transition, done func(commit.Landing)) bool {
	o.commits++
	err := o.to.Commit(ctx, &commit.Item{Transition: t, To: o.back, For: func(l commit.Landing) {
		o.commits--
		done(l)
	}})
	if err != nil {
		o.commits--
	}
	return err == nil
}

// rest closes the idle channels if no commit is on its way.
func (o *outbox) rest() {
	if o.commits > 0 {
		return
	}
	for _, c := range o.idle {
		close(c)
	}
	o.idle = nil
}
