package memory

import (
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storetest"
)

func open(t *testing.T) storetest.Harness {
	s := New(Options{})
	t.Cleanup(func() { s.Close() })
	var (
		lost *bool
		bury store.EngineID
	)
	s.lose = func(landed bool) bool {
		if lost == nil || *lost != landed {
			return false
		}
		s.buryLocked(bury)
		lost, bury = nil, 0
		return true
	}
	return storetest.Harness{
		Store: s,
		Expire: func(_ *testing.T, id store.EngineID) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if m := s.members[id]; m != nil {
				m.lease = s.now().Add(-time.Second)
			}
		},
		Lose: func(_ *testing.T, landed bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			lost = &landed
		},
		LoseFenced: func(_ *testing.T, id store.EngineID, landed bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			lost, bury = &landed, id
		},
	}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

// A bare store has the required methods and no optional role.
type bare struct{ store.Store }

// The rules of the required methods hold without any optional role.
func TestStoreWithoutOptionalRoles(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		h := open(t)
		h.Store = bare{h.Store}
		return h
	})
}

func TestClosed(t *testing.T) {
	s := New(Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Complete(s).Live(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("err = %v, want %v", err, errClosed)
	}
}

func TestStoreTimeIsTheOptions(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 678912345, time.UTC)
	s := New(Options{Now: func() time.Time { return now }})
	id, err := s.Join(t.Context(), "test", time.Second, 1)
	if err != nil {
		t.Fatal(err)
	}
	tick, err := s.Tick(t.Context(), id, time.Second, 1)
	if err != nil || !tick.Now.Equal(now.Truncate(time.Microsecond)) {
		t.Errorf("tick at %v, err = %v, want %v", tick.Now, err, now)
	}
	now = now.Add(time.Second)
	if _, err := s.Tick(t.Context(), id, time.Second, 1); !errors.Is(err, store.ErrLapsed) {
		t.Errorf("tick after the lease: err = %v, want ErrLapsed", err)
	}
}

func TestStress(t *testing.T) { storetest.Stress(t, open(t), 300*time.Millisecond) }
