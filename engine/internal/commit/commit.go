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

// An Item is one transition that is being committed.
type Item struct {
	Transition store.Transition // a transition with the field Names submits a new run
	To         Receiver         // gets the outcome once, unless the committer stops first
	For        any              // data of the receiver; the committer does not read it
	Queued     time.Time        // when the item was queued, by this process's clock; zero = Commit sets it

	Landing Landing // outcome of the commit; set before the receiver gets the item
	unsure  bool    // an earlier try to commit the item ended without an answer of the store
}

// A Receiver receives the outcomes of items.
type Receiver interface {
	// Landed is called with items whose Landing is set. It must not block and must not keep
	// the list. Several writers may call it at the same time.
	Landed([]*Item)
}

// A Landing is the outcome of a commit.
type Landing struct {
	Err       error           // nil = the transition is committed, or Submitted.Exists is true
	Submitted store.Submitted // run that was submitted or found; only if the transition has Names
	// Unsure says that the store did not answer a try, and may have committed the transition
	// in that try. Then ErrStale and ErrExists do not prove that another engine wrote the row.
	Unsure bool
}

// Options holds the settings of a Committer.
type Options struct {
	// MaxRows is the largest number of transitions in a batch. A batch that has at least
	// MaxBytes bytes of data takes no further transition.
	MaxRows, MaxBytes int
	RetryStore        time.Duration // longest pause between two tries; pauses grow up to it
}

// A Committer makes group commits. While a batch is in flight, new transitions wait and become the
// next batch. If no batch is in flight, a transition is sent at once, because there is no timer.
type Committer struct {
	writers []*writer
	opts    Options
	outage  *outage.Outage
	spill   int // if this many transitions wait for one writer, another writer helps; see the constant `spill`
}

// A writer sends one batch at a time to the store.
type writer struct {
	store store.Writer
	queue chan *Item // waiting transitions; Commit blocks while the queue is full
	// oldest is the time at which the oldest item of the batch in flight was queued, in unix
	// nanoseconds; 0 = no batch is in flight.
	oldest atomic.Int64

	// Only the writer's goroutine uses the fields below. They are reused for every batch.
	rows     []*Item            // items of the batch in flight
	batch    []store.Transition // transitions of the items in the field `rows`
	notified []*Item            // items of the batch that are passed to one receiver
}

// New returns a Committer. It sends nothing until Run is called.
func New(writers []store.Writer, opts Options, outage *outage.Outage) *Committer {
	c := &Committer{opts: opts, outage: outage, spill: min(spill, opts.MaxRows)}
	for _, w := range writers {
		c.writers = append(c.writers, &writer{store: w, queue: make(chan *Item, opts.MaxRows)})
	}
	return c
}

// spill is a number of transitions. If at least so many transitions wait for one writer, another
// writer takes some. The limit is Options.MaxRows if that is smaller. Two commits of half the size
// cost the store more than one commit, so a writer that is fast enough works alone.
const spill = 256

// load returns how many transitions wait for the writer. A batch in flight counts as one
// more.
func (w *writer) load() int {
	n := len(w.queue)
	if w.oldest.Load() != 0 {
		n++
	}
	return n
}

// Commit queues a transition. It blocks while the queue is full. If ctx ends before the
// queue has space, Commit returns the error of ctx. Any writer may take the transition,
// because a run has at most one transition in flight.
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
	case w.queue <- it: // the usual case: a select without ctx.Done costs less time
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

// One commits a single transition and returns the outcome. If ctx ends first, One returns the error
// of ctx. Then the transition may or may not be committed.
func (c *Committer) One(ctx context.Context, t store.Transition) (Landing, error) {
	back := make(single, 1)
	if err := c.Commit(ctx, &Item{Transition: t, To: back}); err != nil {
		return Landing{}, err
	}
	select {
	case l := <-back:
		return l, nil
	case <-ctx.Done():
		return Landing{}, ctx.Err()
	}
}

// A single is a channel for the outcome of one commit. Its buffer holds one outcome, so that Landed
// does not block.
type single chan Landing

// Landed passes the outcome on.
func (s single) Landed(items []*Item) {
	for _, it := range items {
		s <- it.Landing
	}
}

// Oldest returns how long the oldest transition of all batches in flight has waited. It
// returns 0 if no batch is in flight.
func (c *Committer) Oldest() time.Duration {
	var age time.Duration
	for _, w := range c.writers {
		if at := w.oldest.Load(); at != 0 {
			age = max(age, time.Since(time.Unix(0, at)))
		}
	}
	return age
}

// Waiting returns how many transitions are in the queues of the writers. When a queue has
// Options.MaxRows transitions, shards that use it must wait.
func (c *Committer) Waiting() int {
	n := 0
	for _, w := range c.writers {
		n += len(w.queue)
	}
	return n
}

// Run commits the transitions in the queue of the n-th writer until ctx ends. It returns ErrFenced
// if the store says that this engine is dead, and a *store.LossError if the store has lost
// committed rows. It also returns an error if the number of outcomes from the store is wrong.
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

// gather takes transitions from the queue, as many as fit into one batch. It returns the item in
// the parameter `first` together with these transitions, sorted by run.
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

// SubmitTries is the largest number of times that a submission is sent while the store does
// not answer. Other rows are sent again without a limit. A submission has a limit because
// its caller waits, and can submit again.
const SubmitTries = 6

// land commits a batch and passes the outcomes to the receivers. After an error of the store the
// outcome is not known (decision 18). Then land sends the same rows again until the store answers
// or ctx ends. So no run fails because of the error. Only submissions have a limit: land sends them
// at most SubmitTries times. It returns an error if this membership is over.
func (c *Committer) land(ctx context.Context, w *writer, rows []*Item) error {
	pause, failed := 20*time.Millisecond, false
	defer func() {
		// The engine does not try these rows again, so the end of the outage must not depend on
		// them.
		if failed {
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
			return w.fail(rows, fmt.Errorf("commit: the store answered %d outcomes for %d transitions", len(outcomes), len(rows)))
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
			return w.fail(rows, err)
		}
		// The outcome is not known: the same rows are sent again, marked as unsure.
		for _, it := range rows {
			it.unsure = true
		}
		if try == SubmitTries {
			rows = w.giveUp(rows, err)
		}
		c.outage.Failed(outage.Commit, err, "runs", len(rows))
		failed = true
		if err := wait.For(ctx, pause); err != nil {
			return w.fail(rows, err)
		}
		pause = min(2*pause, c.opts.RetryStore)
	}
	return nil
}

// giveUp passes the error err to the receivers of the submissions among the rows. It returns
// the other rows.
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

// fail passes the error err to the receivers of all items, and returns err.
func (w *writer) fail(rows []*Item, err error) error {
	for _, it := range rows {
		it.Landing = Landing{Err: err, Unsure: true}
	}
	w.answer(rows)
	return err
}

// answer passes the items to their receivers, with one call for each receiver.
func (w *writer) answer(rows []*Item) {
	for len(rows) > 0 {
		to, notified, n := rows[0].To, w.notified[:0], 0
		for _, it := range rows {
			if it.To == to {
				notified = append(notified, it)
				continue
			}
			rows[n] = it
			n++
		}
		rows = rows[:n]
		to.Landed(notified)
		clear(notified)
		w.notified = notified
	}
}
