package owner

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/store"
)

// A committer takes transitions. After the store has answered a transition, the committer passes
// the transition to its receiver (Item.To). Commit blocks while the committer is full. If this
// membership ends while Commit blocks, Commit returns an error, and the receiver gets nothing. If
// it ends later, the receiver may also get nothing.
type committer interface {
	Commit(ctx context.Context, it *commit.Item) error
}

// inARow is how many tasks a shard does before it passes their transitions to the
// committer. If the shard passed each transition at once, the committer would compete with
// the shard for a CPU. Then each batch would hold few transitions.
const inARow = 64

// An outbox collects the transitions that a shard has decided. It counts the transitions and other
// writes that the store has not answered yet. Only the shard's goroutine uses it.
type outbox struct {
	to      committer
	back    commit.Receiver // receives the answers of the store
	turn    *turn           // measures the shard's task; flush ends the measurement before it waits for the committer
	items   []*commit.Item  // transitions for the committer
	commits int             // number of commits and other writes that the store has not answered yet
	idle    []chan struct{} // channels to close when all commits are answered and no task waits
}

// add adds a transition to the next flush.
func (o *outbox) add(it *commit.Item) {
	it.To = o.back
	o.items = append(o.items, it)
	o.commits++
}

// flush passes the collected transitions to the committer. It blocks while the committer is full,
// so that a slow store also slows down decisions. If the committer returns an error, the membership
// is over. flush ignores the error, because shard.close answers the callers.
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

// commitRow passes a row to the committer at once; it does not wait for the next call of flush. It
// returns true if the committer has taken the row. Later the shard's goroutine calls the function
// `done` with the outcome; but if this membership ends first, `done` may never be called. If the
// committer has not taken the row, because this membership is over, commitRow returns false and
// `done` is not called.
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

// rest closes the channels in the field `idle` if the store has answered all commits. The caller
// makes sure that no task waits.
func (o *outbox) rest() {
	if o.commits > 0 {
		return
	}
	for _, c := range o.idle {
		close(c)
	}
	o.idle = nil
}
