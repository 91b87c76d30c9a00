//go:build failpoints

package faultpoints

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// Store wraps a store, so that a test can inject a fault before and after most calls that
// change the store. It returns a store that is wrapped already unchanged. In builds without the
// tag failpoints, Store returns every store unchanged.
func Store(s store.Store) store.Store {
	switch s.(type) {
	case *faultStore, *triggered, *fed:
		return s
	}
	return withTriggers(&faultStore{store.Complete(s)})
}

// A faultStore passes each call to the store that it wraps. Before and after most calls that
// change the store, a test can inject a fault.
type faultStore struct{ store.Full }

// Wakes calls Wakes of the wrapped store. It returns nil if the wrapped store does not have
// this method.
func (s *faultStore) Wakes(ctx context.Context) <-chan struct{} {
	if w, ok := s.Full.Store.(store.Waker); ok {
		return w.Wakes(ctx)
	}
	return nil
}

// Examine calls Examine of the wrapped store. It returns no findings if the wrapped store
// does not have this method.
func (s *faultStore) Examine(ctx context.Context) ([]health.Finding, error) {
	if e, ok := s.Full.Store.(health.Examiner); ok {
		return e.Examine(ctx)
	}
	return nil, nil
}

// Retain calls Retain of the wrapped store. It does nothing if the wrapped store does not
// have this method.
func (s *faultStore) Retain(ctx context.Context, before time.Time, limit int) (store.RetainStats, error) {
	r, ok := s.Full.Store.(store.Retainer)
	if !ok {
		return store.RetainStats{}, nil
	}
	failpoint.Hit("store.Retain.before")
	defer failpoint.Hit("store.Retain.after")
	return r.Retain(ctx, before, limit)
}

// Retained calls Retained of the wrapped store. It returns 0 if the wrapped store does not
// have this method.
func (s *faultStore) Retained(ctx context.Context) (status.RunID, error) {
	if r, ok := s.Full.Store.(store.Retainer); ok {
		return r.Retained(ctx)
	}
	return 0, nil
}

// The type `faultStore` implements rekey.Resealer. Each method of this role calls the same method
// of the wrapped store. If the wrapped store is not a rekey.Resealer, the methods return an error.

func (s *faultStore) resealer() (rekey.Resealer, error) {
	r, ok := rekey.Of(s.Full)
	if !ok {
		return nil, errors.New("faultpoints: the store does not seal data again")
	}
	return r, nil
}

func (s *faultStore) Repin(ctx context.Context, setting, old, value string) (string, error) {
	r, err := s.resealer()
	if err != nil {
		return "", err
	}
	return r.Repin(ctx, setting, old, value)
}

func (s *faultStore) Definitions(ctx context.Context, after string, limit int) ([]store.Definition, error) {
	r, err := s.resealer()
	if err != nil {
		return nil, err
	}
	return r.Definitions(ctx, after, limit)
}

func (s *faultStore) AllMessages(ctx context.Context, runs ...status.RunID) ([]store.Message, []store.LateReply, error) {
	r, err := s.resealer()
	if err != nil {
		return nil, nil, err
	}
	return r.AllMessages(ctx, runs...)
}

func (s *faultStore) Reseal(ctx context.Context, d rekey.Resealed) error {
	r, err := s.resealer()
	if err != nil {
		return err
	}
	return r.Reseal(ctx, d)
}

func (s *faultStore) ResealDefinition(ctx context.Context, digest string, data []byte) error {
	r, err := s.resealer()
	if err != nil {
		return err
	}
	return r.ResealDefinition(ctx, digest, data)
}

// The type `faultStore` implements notice.Keeper. Each method of this role calls the same method of
// the wrapped store. If the wrapped store is not a notice.Keeper, the methods return no notices and
// mark none.

func (s *faultStore) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	if k, ok := notice.Of(s.Full); ok {
		return k.Open(ctx, after, limit)
	}
	return nil, nil
}

func (s *faultStore) Announced(ctx context.Context, done ...notice.Notice) error {
	k, ok := notice.Of(s.Full)
	if !ok {
		return nil
	}
	failpoint.Hit("store.Announced.before")
	defer failpoint.Hit("store.Announced.after")
	return k.Announced(ctx, done...)
}

func (s *faultStore) OfRun(ctx context.Context, run status.RunID) ([]notice.Kept, error) {
	if k, ok := notice.Of(s.Full); ok {
		return k.OfRun(ctx, run)
	}
	return nil, nil
}

func (s *faultStore) PutDefinition(ctx context.Context, d store.Definition) (map[string]store.WorkflowID, error) {
	failpoint.Hit("store.PutDefinition.before")
	defer failpoint.Hit("store.PutDefinition.after")
	return s.Full.PutDefinition(ctx, d)
}

func (s *faultStore) Pin(ctx context.Context, setting, value string) (string, error) {
	failpoint.Hit("store.Pin.before")
	defer failpoint.Hit("store.Pin.after")
	return s.Full.Pin(ctx, setting, value)
}

func (s *faultStore) Join(ctx context.Context, address string, lease time.Duration, writers int) (store.EngineID, error) {
	failpoint.Hit("store.Join.before")
	defer failpoint.Hit("store.Join.after")
	return s.Full.Join(ctx, address, lease, writers)
}

func (s *faultStore) Tick(ctx context.Context, engine store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	failpoint.Hit("store.Tick.before")
	defer failpoint.Hit("store.Tick.after")
	return s.Full.Tick(ctx, engine, lease, limit)
}

func (s *faultStore) Fence(ctx context.Context, dead store.EngineID) (bool, error) {
	failpoint.Hit("store.Fence.before")
	defer failpoint.Hit("store.Fence.after")
	return s.Full.Fence(ctx, dead)
}

func (s *faultStore) Leave(ctx context.Context, engine store.EngineID) error {
	failpoint.Hit("store.Leave.before")
	defer failpoint.Hit("store.Leave.after")
	return s.Full.Leave(ctx, engine)
}

func (s *faultStore) PutInHand(ctx context.Context, engine store.EngineID, runs []status.RunID) error {
	failpoint.Hit("store.PutInHand.before")
	defer failpoint.Hit("store.PutInHand.after")
	return s.Full.PutInHand(ctx, engine, runs)
}

func (s *faultStore) Absolve(ctx context.Context, runs ...status.RunID) error {
	failpoint.Hit("store.Absolve.before")
	defer failpoint.Hit("store.Absolve.after")
	return s.Full.Absolve(ctx, runs...)
}

func (s *faultStore) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	failpoint.Hit("store.Pass.before")
	defer failpoint.Hit("store.Pass.after")
	return s.Full.Pass(ctx, name, period)
}

func (s *faultStore) Post(ctx context.Context, m store.Message) (store.MessageID, error) {
	failpoint.Hit("store.Post.before")
	defer failpoint.Hit("store.Post.after")
	return s.Full.Post(ctx, m)
}

func (s *faultStore) Discard(ctx context.Context, run status.RunID, ids []store.MessageID) error {
	failpoint.Hit("store.Discard.before")
	defer failpoint.Hit("store.Discard.after")
	return s.Full.Discard(ctx, run, ids)
}

func (s *faultStore) KeepLate(ctx context.Context, l store.LateReply) error {
	failpoint.Hit("store.KeepLate.before")
	defer failpoint.Hit("store.KeepLate.after")
	return s.Full.KeepLate(ctx, l)
}

// The type `faultStore` implements snapshots.Keeper. If the wrapped store is not a
// snapshots.Keeper, the methods of this role find no snapshots, and KeepSnapshot stores nothing.

func (s *faultStore) KeepSnapshot(ctx context.Context, engine store.EngineID, x snapshots.Snapshot) error {
	role, ok := snapshots.Of(s.Full)
	if !ok {
		return nil
	}
	failpoint.Hit("store.KeepSnapshot.before")
	defer failpoint.Hit("store.KeepSnapshot.after")
	return role.KeepSnapshot(ctx, engine, x)
}

func (s *faultStore) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	if role, ok := snapshots.Of(s.Full); ok {
		return role.Snapshotted(ctx, runs...)
	}
	return nil, nil
}

func (s *faultStore) LoadShort(ctx context.Context, run status.RunID) (snapshots.Loaded, error) {
	if role, ok := snapshots.Of(s.Full); ok {
		return role.LoadShort(ctx, run)
	}
	return snapshots.Loaded{}, store.ErrNotFound
}

func (s *faultStore) KeepLogs(ctx context.Context, lines []store.LogLine) error {
	failpoint.Hit("store.KeepLogs.before")
	defer failpoint.Hit("store.KeepLogs.after")
	return s.Full.KeepLogs(ctx, lines)
}

func (s *faultStore) Delivered(ctx context.Context, ids []int64) error {
	failpoint.Hit("store.Delivered.before")
	defer failpoint.Hit("store.Delivered.after")
	return s.Full.Delivered(ctx, ids)
}

func (s *faultStore) OpenWriter(ctx context.Context, engine store.EngineID, n int) (store.Writer, error) {
	failpoint.Hit("store.OpenWriter.before")
	defer failpoint.Hit("store.OpenWriter.after")
	w, err := s.Full.OpenWriter(ctx, engine, n)
	if err != nil {
		return nil, err
	}
	return &faultWriter{w}, nil
}

type faultWriter struct{ store.Writer }

func (w *faultWriter) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	if slices.ContainsFunc(batch, func(t store.Transition) bool { return t.Names != nil }) {
		failpoint.Hit("store.Submit.before") // the batch contains a submission
		defer failpoint.Hit("store.Submit.after")
	}
	failpoint.Hit("store.Commit.before")
	defer failpoint.Hit("store.Commit.after")
	return w.Writer.Commit(ctx, batch)
}

// The type `faultStore` implements goals.Keeper. Each method of this role calls the same method of
// the wrapped store. If the wrapped store is not a goals.Keeper, there are no goals.

func (s *faultStore) Goals(ctx context.Context, f goals.Filter) ([]goals.Goal, error) {
	if k, ok := goals.Of(s.Full); ok {
		return k.Goals(ctx, f)
	}
	return nil, nil
}

func (s *faultStore) ResetGoal(ctx context.Context, r goals.Reset) (goals.Goal, error) {
	k, ok := goals.Of(s.Full)
	if !ok {
		return goals.Goal{}, store.ErrNotFound
	}
	failpoint.Hit("store.ResetGoal.before")
	defer failpoint.Hit("store.ResetGoal.after")
	return k.ResetGoal(ctx, r)
}

func (s *faultStore) Resets(ctx context.Context, run status.RunID) ([]goals.Reset, error) {
	if k, ok := goals.Of(s.Full); ok {
		return k.Resets(ctx, run)
	}
	return nil, nil
}
