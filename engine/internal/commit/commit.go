// Package commit is the group commit of an engine.
//
// In come transitions; out go their outcomes, to the receiver of each. The package knows
// neither runs nor agents. It keeps the order in which the store answers. If the store
// does not answer, it sends the whole batch again (decision 18).
package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
)

// An Item is one transition on its way to the store.
type Item struct {
	Transition store.Transition // with Names: it submits a new run
	To         Receiver         // gets the result, once, unless the committer stops first
	For        any              // the receiver's own note; the committer does not read it
	Queued     time.Time        // when it was queued, by this process's clock; zero = when Commit is called

	Landing Landing // set before the receiver gets the item
	unsure  bool    // an earlier sending ended without an answer
}

// A Receiver gets the outcomes of items.
type Receiver interface {
	// Landed takes items whose Landing is known. It does not block, and does not keep
	// the list. Several writers may call it at once.
	Landed([]*Item)
}

// A Landing is the outcome of an item.
type Landing struct {
	Err       error           // nil = landed
	Submitted store.Submitted // of a transition with names
	// Unsure says that an earlier sending may have landed this transition. Then ErrStale
	// and ErrExists do not prove that another engine wrote the row.
	Unsure bool
}

// Options bound a batch.
type Options struct {
	MaxRows, MaxBytes int
	RetryStore        time.Duration // bounds the growing pause between two sendings
}

// A Committer is the group commit. Transitions that queue while a batch is in flight
// become the next batch. There is no timer, so a lone transition is sent at once.
type Committer struct {
	writers []*writer
	opts    Options
	outage  *outage.Outage
	spill   int // number of waiting transitions from which another writer helps
}

type writer struct {
	store  store.Writer
	queue  chan *Item   // bounded: Commit blocks when the store is too slow
	oldest atomic.Int64 // unix nanoseconds when the oldest item of the batch in flight came; 0 = none

	// Only the writer's goroutine uses the rest, from batch to batch.
	rows  []*Item
	batch []store.Transition
	told  []*Item
}

// New returns a Committer. It sends nothing before Run.
func New(writers []store.Writer, opts Options, outage *outage.Outage) *Committer {
	c := &Committer{opts: opts, outage: outage, spill: min(spill, opts.MaxRows)}
	for _, w := range writers {
		c.writers = append(c.writers, &writer{store: w, queue: make(chan *Item, opts.MaxRows)})
	}
	return c
}

// spill is how many transitions wait for a writer before another writer takes some, or the
// size of a batch if that is smaller. Two commits of half the size cost the store more
// than one, so a single writer that keeps up works alone.
const spill = 256

// load returns the number of transitions that wait for the writer or are in its batch.
func (w *writer) load() int {
	n := len(w.queue)
	if w.oldest.Load() != 0 {
		n++
	}
	return n
}

// Commit queues a transition. It blocks while the queues are full, and returns
// ctx's error if ctx ends before there is room. A run has at most one transition
// in flight, so any writer may take it.
func (c *Committer) Commit(ctx context.Context, it *Item) error {
	if it.Queued.IsZero() {
		it.Queued = time.Now()
	}
	w := c.writers[0]
	for _, other := range c.writers[1:] {
		if w.load() < c.spill {
			break
		}
		if other.load() < w.load() {
			w = other
		}
	}
	select {
	case w.queue <- it: // the usual case; a select of one channel is cheaper
		return nil
	default:
	}
	select {
	case w.queue <- it:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Oldest returns for how long the oldest transition has waited for its commit.
func (c *Committer) Oldest() time.Duration {
	var age time.Duration
	for _, w := range c.writers {
		if at := w.oldest.Load(); at != 0 {
			age = max(age, time.Since(time.Unix(0, at)))
		}
	}
	return age
}

// Waiting returns how many transitions wait for the commit in flight to end. When it
// reaches Options.MaxRows for each writer, the shards wait, too.
func (c *Committer) Waiting() int {
	n := 0
	for _, w := range c.writers {
		n += len(w.queue)
	}
	return n
}

// Run commits what is queued at the n-th writer until ctx ends. Returns
// ErrFenced if the store says that this engine is dead.
func (c *Committer) Run(ctx context.Context, n int) error {
	w := c.writers[n]
	for {
		var first *Item
		select {
		case first = <-w.queue:
		case <-ctx.Done():
			return ctx.Err()
		}
		rows := c.gather(w, first)
		w.oldest.Store(first.Queued.UnixNano())
		err := c.land(ctx, w, rows)
		w.oldest.Store(0)
		if err != nil {
			return err
		}
	}
}

// gather drains the queue into one batch sorted by run.
func (c *Committer) gather(w *writer, first *Item) []*Item {
	rows, bytes := w.rows[:0], 0
	for it := first; it != nil; {
		rows, bytes = append(rows, it), bytes+len(it.Transition.Data)
		it = nil
		if len(rows) < c.opts.MaxRows && bytes < c.opts.MaxBytes {
			select {
			case it = <-w.queue:
			default:
			}
		}
	}
	slices.SortFunc(rows, func(a, b *Item) int { return cmp.Compare(a.Transition.Run, b.Transition.Run) })
	w.rows = rows
	return rows
}

// SubmitTries is how often a submission is sent while the store does not answer. It is
// bounded, unlike for other rows, because the caller waits and can submit again. The time
// that a store waits inside Commit is bounded by the caller's context.
const SubmitTries = 6

// land commits a batch and gives each receiver its outcomes. After an error of the store
// the outcome is open (decision 18): land sends the same rows again until ctx ends, so that
// no run fails because of it. Landing.Unsure then says that there was an earlier sending.
func (c *Committer) land(ctx context.Context, w *writer, rows []*Item) error {
	pause, failed := 20*time.Millisecond, false
	defer func() {
		if failed { // land ends without an answer: the rows are not sent again
			c.outage.Over(outage.Commit)
		}
	}()
	for try := 1; len(rows) > 0; try++ {
		batch := w.batch[:0]
		for _, it := range rows {
			batch = append(batch, it.Transition)
		}
		outcomes, err := w.store.Commit(ctx, batch)
		clear(batch)
		w.batch = batch
		if err == nil && len(outcomes) != len(rows) {
			return w.tell(rows, fmt.Errorf("commit: the store answered %d outcomes for %d transitions", len(outcomes), len(rows)))
		}
		if err == nil {
			if failed {
				c.outage.Worked(outage.Commit, time.Now())
			}
			for i, it := range rows {
				it.Landing = Landing{Err: outcomes[i].Err, Submitted: outcomes[i].Submitted, Unsure: it.unsure}
				if !outcomes[i].Landed && !it.Landing.Submitted.Exists && it.Landing.Err == nil {
					it.Landing.Err = store.ErrStale
				}
			}
			w.answer(rows)
			return nil
		}
		var loss *store.LossError
		if errors.Is(err, store.ErrFenced) || errors.As(err, &loss) || ctx.Err() != nil {
			return w.tell(rows, err)
		}
		// The outcome is open: the same rows are sent again, and marked as unsure.
		for _, it := range rows {
			it.unsure = true
		}
		if try == SubmitTries {
			rows = w.giveUp(rows, err)
		}
		c.outage.Failed(outage.Commit, err, "runs", len(rows))
		failed = true
		if err := wait.For(ctx, pause); err != nil {
			return w.tell(rows, err)
		}
		pause = min(2*pause, c.opts.RetryStore)
	}
	return nil
}

// giveUp reports to the submissions among the rows that the store does not answer, and
// returns the other rows.
func (w *writer) giveUp(rows []*Item, err error) []*Item {
	var rest, submissions []*Item
	for _, it := range rows {
		if it.Transition.Names == nil {
			rest = append(rest, it)
			continue
		}
		it.Landing = Landing{Err: err, Unsure: true}
		submissions = append(submissions, it)
	}
	w.answer(submissions)
	return rest
}

// tell gives every item the same error and returns it.
func (w *writer) tell(rows []*Item, err error) error {
	for _, it := range rows {
		it.Landing = Landing{Err: err, Unsure: true}
	}
	w.answer(rows)
	return err
}

// answer gives the receivers their items, with one call for each receiver.
func (w *writer) answer(rows []*Item) {
	for len(rows) > 0 {
		to, told, n := rows[0].To, w.told[:0], 0
		for _, it := range rows {
			if it.To == to {
				told = append(told, it)
				continue
			}
			rows[n] = it
			n++
		}
		rows = rows[:n]
		to.Landed(told)
		clear(told)
		w.told = told
	}
}
