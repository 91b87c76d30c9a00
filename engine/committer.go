package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
)

// A commit is one transition on its way to the store.
type commit struct {
	t store.Transition // with Names: it submits a new run
	// sh is told the result, once, unless the committer stops first; what it is
	// for is r and f, or done.
	sh   *shard
	r    *ownedRun
	f    *pendingCommit
	done func(landing) // called by the shard's goroutine in place of going on with r; nil = go on

	res    landing
	queued time.Time // when it came, by this process's clock; zero = not yet
	unsure bool      // an earlier sending ended without an answer
}

// A landing is what became of a commit.
type landing struct {
	err       error           // nil = landed
	submitted store.Submitted // of a transition with names
	// unsure says that an earlier sending may have landed this very
	// transition: ErrStale and ErrExists do not prove that another did.
	unsure bool
}

// A committer is the group commit: what queued while the last batch was in
// flight becomes the next one. There is no timer and no linger, so a lone
// transition waits for no other.
type committer struct {
	writers []*commitWriter
	opts    Options
	outage  *outage
	spill   int // load of a writer from which on another one helps
}

type commitWriter struct {
	store  store.Writer
	queue  chan *commit // bounded: who commits faster than the store waits
	oldest atomic.Int64 // unix nanoseconds when the oldest item of the batch in flight came; 0 = none

	// Only the writer's goroutine uses the rest, from batch to batch.
	rows  []*commit
	batch []store.Transition
	tasks []task
}

func newCommitter(writers []store.Writer, opts Options, outage *outage) *committer {
	c := &committer{opts: opts, outage: outage, spill: min(spill, opts.MaxBatchRows)}
	for _, w := range writers {
		c.writers = append(c.writers, &commitWriter{store: w, queue: make(chan *commit, opts.MaxBatchRows)})
	}
	return c
}

// spill is how many transitions wait at a writer before another takes some, unless
// a batch holds less: two commits of half the size cost the store more than one, and
// a lone writer that keeps up has no use for company.
const spill = 256

// load is how much the writer has to do: what waits, and a batch on its way.
func (w *commitWriter) load() int {
	n := len(w.queue)
	if w.oldest.Load() != 0 {
		n++
	}
	return n
}

// commit queues a transition. It blocks while the queues are full, and returns
// ctx's error if ctx ends before there is room. A run has at most one transition
// on its way, so any writer may take it.
func (c *committer) commit(ctx context.Context, it *commit) error {
	if it.queued.IsZero() {
		it.queued = time.Now()
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
	case w.queue <- it: // nearly always, and cheaper when it is asked alone
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

// oldest returns for how long the oldest transition has waited for its commit.
func (c *committer) oldest() time.Duration {
	var age time.Duration
	for _, w := range c.writers {
		if at := w.oldest.Load(); at != 0 {
			age = max(age, time.Since(time.Unix(0, at)))
		}
	}
	return age
}

// waiting returns how many transitions wait for the commit that is on its way to
// end. At MaxBatchRows for each writer, the shards wait too.
func (c *committer) waiting() int {
	n := 0
	for _, w := range c.writers {
		n += len(w.queue)
	}
	return n
}

// run commits what is queued at the n-th writer until ctx ends. Returns
// ErrFenced if the store says that this engine is dead.
func (c *committer) run(ctx context.Context, n int) error {
	w := c.writers[n]
	for {
		var first *commit
		select {
		case first = <-w.queue:
		case <-ctx.Done():
			return ctx.Err()
		}
		rows := c.gather(w, first)
		w.oldest.Store(first.queued.UnixNano())
		err := c.land(ctx, w, rows)
		w.oldest.Store(0)
		if err != nil {
			return err
		}
	}
}

// gather drains the queue into one batch sorted by run.
func (c *committer) gather(w *commitWriter, first *commit) []*commit {
	rows, bytes := w.rows[:0], 0
	for it := first; it != nil; {
		rows, bytes = append(rows, it), bytes+len(it.t.Data)
		it = nil
		if len(rows) < c.opts.MaxBatchRows && bytes < c.opts.MaxBatchBytes {
			select {
			case it = <-w.queue:
			default:
			}
		}
	}
	slices.SortFunc(rows, func(a, b *commit) int { return cmp.Compare(a.t.Run, b.t.Run) })
	w.rows = rows
	return rows
}

// submitTries is how often a submission is sent when the store returns without
// having landed it. It is bounded, unlike that of other rows, because the caller
// waits and can try again. What a store waits for inside Commit is bounded by
// the submitter's own patience.
const submitTries = 6

// land commits a batch and tells everyone in it. An error of the store leaves open
// what landed (decision 0018): the same rows are sent again until ctx ends, so a run
// never fails for that. Who is told after such a sending is told that too.
func (c *committer) land(ctx context.Context, w *commitWriter, rows []*commit) error {
	pause, failed := 20*time.Millisecond, false
	defer func() {
		if failed { // these are not sent any more
			c.outage.over(doingCommit)
		}
	}()
	for try := 1; len(rows) > 0; try++ {
		batch := w.batch[:0]
		for _, it := range rows {
			batch = append(batch, it.t)
		}
		outcomes, err := w.store.Commit(ctx, batch)
		clear(batch)
		w.batch = batch
		if err == nil && len(outcomes) != len(rows) {
			return w.tell(rows, fmt.Errorf("commit: the store answered %d outcomes for %d transitions", len(outcomes), len(rows)))
		}
		if err == nil {
			if failed {
				c.outage.worked(doingCommit, time.Now())
			}
			for i, it := range rows {
				it.res = landing{err: outcomes[i].Err, submitted: outcomes[i].Submitted, unsure: it.unsure}
				if !outcomes[i].Landed && !it.res.submitted.Exists && it.res.err == nil {
					it.res.err = store.ErrStale
				}
			}
			w.answer(rows)
			return nil
		}
		var loss *store.LossError
		if errors.Is(err, store.ErrFenced) || errors.As(err, &loss) || ctx.Err() != nil {
			return w.tell(rows, err)
		}
		// The outcome is open: the same rows are sent again, and marked.
		for _, it := range rows {
			it.unsure = true
		}
		if try == submitTries {
			rows = w.giveUp(rows, err)
		}
		c.outage.failed(doingCommit, err, "runs", len(rows))
		failed = true
		if err := wait.For(ctx, pause); err != nil {
			return w.tell(rows, err)
		}
		pause = min(2*pause, c.opts.RetryStore)
	}
	return nil
}

// giveUp tells the submissions among the rows that the store does not answer,
// and returns the others.
func (w *commitWriter) giveUp(rows []*commit, err error) []*commit {
	var rest, submissions []*commit
	for _, it := range rows {
		if it.t.Names == nil {
			rest = append(rest, it)
			continue
		}
		it.res = landing{err: err, unsure: true}
		submissions = append(submissions, it)
	}
	w.answer(submissions)
	return rest
}

// tell gives every item the same error and returns it.
func (w *commitWriter) tell(rows []*commit, err error) error {
	for _, it := range rows {
		it.res = landing{err: err, unsure: true}
	}
	w.answer(rows)
	return err
}

// answer tells shards what became of their commits, each shard once.
func (w *commitWriter) answer(rows []*commit) {
	for len(rows) > 0 {
		sh, tasks, n := rows[0].sh, w.tasks[:0], 0
		for _, it := range rows {
			if it.sh == sh {
				tasks = append(tasks, task{it: it})
				continue
			}
			rows[n] = it
			n++
		}
		rows = rows[:n]
		sh.give(tasks...)
		clear(tasks)
		w.tasks = tasks
	}
}
