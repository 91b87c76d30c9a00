package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// A commit is one transition on its way to the store.
type commit struct {
	t     Transition
	names *Names // the transition submits a new run under these names; nil = it does not
	// done is told the result, once, from a writer's goroutine. It must not
	// block. It is not told if the committer stops first.
	done func(landing)

	queued time.Time // when it came, by this process's clock
	unsure bool      // an earlier sending ended without an answer
}

// A landing is what became of a commit.
type landing struct {
	err       error     // nil = landed
	submitted Submitted // of a commit with names
	// unsure says that an earlier sending may have landed this very
	// transition: ErrStale and ErrExists do not prove that another did.
	unsure bool
}

// A committer is the group commit: what queued while the last batch was in
// flight becomes the next one. There is no timer and no linger, so a lone
// transition waits for nobody. A run's transitions all pass one writer.
type committer struct {
	writers []*commitWriter
	opts    Options
	log     *slog.Logger
}

type commitWriter struct {
	store  Writer
	queue  chan *commit // bounded: who commits faster than the store waits
	oldest atomic.Int64 // unix nanoseconds when the oldest item of the batch in flight came; 0 = none
}

func newCommitter(writers []Writer, opts Options, log *slog.Logger) *committer {
	c := &committer{opts: opts, log: log}
	for _, w := range writers {
		c.writers = append(c.writers, &commitWriter{store: w, queue: make(chan *commit, opts.MaxBatchRows)})
	}
	return c
}

// commit queues a transition. It blocks while the queue is full, and returns
// ctx's error if ctx ends before there is room.
func (c *committer) commit(ctx context.Context, it *commit) error {
	it.queued = time.Now()
	w := c.writers[uint64(it.t.Run)%uint64(len(c.writers))]
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
		rows, submissions := c.gather(w, first)
		w.oldest.Store(first.queued.UnixNano())
		err := c.land(ctx, w, rows)
		for _, s := range submissions {
			if err == nil {
				err = c.submit(ctx, w, s)
			}
		}
		w.oldest.Store(0)
		if err != nil {
			return err
		}
	}
}

// gather drains the queue into one batch sorted by run, and the submissions
// found on the way, each of which is a transaction of its own.
func (c *committer) gather(w *commitWriter, first *commit) (rows, submissions []*commit) {
	bytes := 0
	add := func(it *commit) {
		bytes += len(it.t.Data)
		if it.names != nil {
			submissions = append(submissions, it)
		} else {
			rows = append(rows, it)
		}
	}
	for add(first); len(rows) < c.opts.MaxBatchRows && bytes < c.opts.MaxBatchBytes; {
		select {
		case it := <-w.queue:
			add(it)
			continue
		default:
		}
		break
	}
	slices.SortFunc(rows, func(a, b *commit) int { return cmp.Compare(a.t.Run, b.t.Run) })
	return rows, submissions
}

// land commits a batch and tells everyone in it. A store that does not answer
// is asked again until ctx ends: a run never fails for that.
func (c *committer) land(ctx context.Context, w *commitWriter, rows []*commit) error {
	if len(rows) == 0 {
		return nil
	}
	batch := make([]Transition, len(rows))
	for i, it := range rows {
		batch[i] = it.t
	}
	outcomes, err := retryStore(ctx, c, "commit", rows, 0, func() ([]Outcome, error) {
		return w.store.Commit(ctx, batch)
	})
	if err != nil {
		return tell(rows, err)
	}
	if len(outcomes) != len(rows) {
		return tell(rows, fmt.Errorf("commit: the store answered %d outcomes for %d transitions", len(outcomes), len(rows)))
	}
	for i, it := range rows {
		res := landing{err: outcomes[i].Err, unsure: it.unsure}
		if !outcomes[i].Landed && res.err == nil {
			res.err = ErrStale
		}
		it.done(res)
	}
	return nil
}

// submitTries is how often a submission is sent when the store does not
// answer. It is bounded, unlike that of other rows, because somebody waits who
// can try again, and because others wait behind it.
const submitTries = 6

// submit lands the first transition of a run.
func (c *committer) submit(ctx context.Context, w *commitWriter, it *commit) error {
	s, err := retryStore(ctx, c, "submit", []*commit{it}, submitTries, func() (Submitted, error) {
		return w.store.Submit(ctx, it.t, *it.names)
	})
	var loss *LossError
	if errors.Is(err, ErrFenced) || errors.As(err, &loss) || ctx.Err() != nil {
		return tell([]*commit{it}, err)
	}
	it.done(landing{err: err, submitted: s, unsure: it.unsure})
	return nil
}

// retryStore calls f until it answers, with a result or with a condition that
// the contract names, at most tries times (0 = no limit). Any other error
// leaves the outcome open: the same rows are sent again, and marked.
func retryStore[T any](ctx context.Context, c *committer, what string, rows []*commit, tries int, f func() (T, error)) (T, error) {
	pause := 20 * time.Millisecond
	for n := 1; ; n++ {
		res, err := f()
		var loss *LossError
		if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrExists) || errors.As(err, &loss) || ctx.Err() != nil {
			return res, err
		}
		for _, it := range rows {
			it.unsure = true
		}
		if n == tries {
			return res, fmt.Errorf("%s: %w", what, err)
		}
		c.log.Warn("the store does not answer, trying again", "doing", what, "runs", len(rows), "error", err)
		if err := sleep(ctx, pause); err != nil {
			return res, err
		}
		pause = min(2*pause, c.opts.RetryStore)
	}
}

// tell gives every item the same error and returns it.
func tell(items []*commit, err error) error {
	for _, it := range items {
		it.done(landing{err: err, unsure: true})
	}
	return err
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
