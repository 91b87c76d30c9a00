package engine_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

var errDown = errors.New("the store is down")

// A faultStore is a node's way to the store, which a test can break.
type faultStore struct {
	store.Full
	down   atomic.Bool           // nothing gets through
	noJoin atomic.Bool           // joining fails
	noTick atomic.Bool           // ticks fail
	noPost atomic.Bool           // no message reaches an inbox
	noRead atomic.Pointer[error] // what reading a journal, a definition or an inbox brings; nil = it works
	stale  atomic.Int32          // so many commits are answered stale without landing
	taken  atomic.Int32          // so many lone submissions find their id taken
	bad    atomic.Int32          // so many commits are answered with a refusal of each row, without landing
	frozen atomic.Value          // chan struct{}: calls wait until it is closed; nil = none

	opens func(n int) bool // whether the n-th writer can be opened; nil = it can

	mu      sync.Mutex // protects the fields below
	commits int        // commits and submissions so far
	batches []int      // rows of each commit
	// plan is asked before the n-th commit or submission (from 1) and again
	// after it; an error stands for an answer that did not arrive.
	plan func(n int, after bool) error
	// landed is called after every commit that landed something.
	landed func(run status.RunID)
}

func (s *faultStore) gate() error {
	if c, ok := s.frozen.Load().(chan struct{}); ok && c != nil {
		<-c
	}
	if s.down.Load() {
		return errDown
	}
	return nil
}

func (s *faultStore) Join(ctx context.Context, address string, lease time.Duration, writers int) (store.EngineID, error) {
	if err := s.gate(); err != nil {
		return 0, err
	}
	if s.noJoin.Load() {
		return 0, errDown
	}
	return s.Full.Join(ctx, address, lease, writers)
}

func (s *faultStore) Tick(ctx context.Context, e store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	if err := s.gate(); err != nil {
		return store.Tick{}, err
	}
	if s.noTick.Load() {
		return store.Tick{}, errDown
	}
	return s.Full.Tick(ctx, e, lease, limit)
}

func (s *faultStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	if err := cmp.Or(s.gate(), s.read()); err != nil {
		return nil, err
	}
	return s.Full.Load(ctx, runs...)
}

func (s *faultStore) read() error {
	if err := s.noRead.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *faultStore) Rows(ctx context.Context, run status.RunID, from int32, limit int) ([]store.Row, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Full.Rows(ctx, run, from, limit)
}

func (s *faultStore) Definition(ctx context.Context, id store.WorkflowID) (store.Definition, string, error) {
	if err := s.read(); err != nil {
		return store.Definition{}, "", err
	}
	return s.Full.Definition(ctx, id)
}

func (s *faultStore) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Full.Messages(ctx, run, after, limit)
}

func (s *faultStore) Post(ctx context.Context, m store.Message) (store.MessageID, error) {
	if s.noPost.Load() {
		return 0, errDown
	}
	return s.Full.Post(ctx, m)
}

func (s *faultStore) Retain(ctx context.Context, before time.Time, limit int) (store.RetainStats, error) {
	if r, ok := s.Full.Store.(store.Retainer); ok {
		return r.Retain(ctx, before, limit)
	}
	return store.RetainStats{}, nil // a store around the memory store hides the role
}

func (s *faultStore) Retained(ctx context.Context) (status.RunID, error) {
	if r, ok := s.Full.Store.(store.Retainer); ok {
		return r.Retained(ctx)
	}
	return 0, nil
}

func (s *faultStore) Leave(ctx context.Context, e store.EngineID) error {
	if err := s.gate(); err != nil {
		return err
	}
	return s.Full.Leave(ctx, e)
}

func (s *faultStore) OpenWriter(ctx context.Context, e store.EngineID, n int) (store.Writer, error) {
	if err := s.gate(); err != nil {
		return nil, err
	}
	if s.opens != nil && !s.opens(n) {
		return nil, errDown
	}
	w, err := s.Full.OpenWriter(ctx, e, n)
	if err != nil {
		return nil, err
	}
	return &faultWriter{w, s}, nil
}

func (s *faultStore) ask(n int, after bool) error {
	s.mu.Lock()
	plan := s.plan
	s.mu.Unlock()
	if plan == nil {
		return nil
	}
	return plan(n, after)
}

func (s *faultStore) next(rows int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	s.batches = append(s.batches, rows)
	return s.commits
}

func (s *faultStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

type faultWriter struct {
	store.Writer
	s *faultStore
}

func (w *faultWriter) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	if err := w.s.gate(); err != nil {
		return nil, err
	}
	n := w.s.next(len(batch))
	if err := w.s.ask(n, false); err != nil {
		return nil, err
	}
	if w.s.taken.Load() > 0 && len(batch) == 1 && batch[0].Names != nil {
		w.s.taken.Add(-1)
		return []store.Outcome{{Err: store.ErrExists}}, nil
	}
	if w.s.bad.Load() > 0 {
		w.s.bad.Add(-1)
		out := make([]store.Outcome, len(batch))
		for i := range out {
			out[i].Err = errors.New("the row is refused")
		}
		return out, nil
	}
	if w.s.stale.Add(-1) >= 0 {
		out := make([]store.Outcome, len(batch))
		for i := range out {
			out[i].Err = store.ErrStale
		}
		return out, nil
	}
	out, err := w.Writer.Commit(ctx, batch)
	if err == nil && w.s.landed != nil {
		for i, o := range out {
			if o.Landed {
				w.s.landed(batch[i].Run)
			}
		}
	}
	if err := w.s.ask(n, true); err != nil {
		return nil, err
	}
	return out, err
}

// faulty puts a faultStore between the world's next nodes and its store, and
// checks after every commit that the run's bound is no later than what is due
// (I10, promise 13).
func (w *world) faulty() *faultStore {
	s := &faultStore{Full: store.Complete(w.mem)}
	s.landed = func(run status.RunID) { w.check(run) }
	w.store = s
	return s
}

// within fails the test if f is not done in time, which in a bubble costs
// nothing.
func within(t *testing.T, d time.Duration, what string, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
