package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
	"github.com/saga-engine/engine/engine/story"
)

// A caller that waits for a run also waits while the store does not answer: at the first
// read, during the run, and for the answer to a verb. No fact is reported twice, and an
// outage is reported once.
func TestFollowOutlastsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(context.Context, int) error { time.Sleep(8 * time.Second); return nil })
		n := w.start()
		run := w.submit(n, "order", nil)
		far := w.faulty() // the way of those who only look; the engine's own is whole
		far.noRead.Store(&errDown)
		ends := make(chan error, 2)
		facts, outages := 0, 0
		go func() {
			s, err := journal.Reader{Store: far, Defs: journal.NewDefinitions(far, nil)}.Follow(t.Context(), run, 1, func(first int, told []story.Fact) {
				if first != facts+1 {
					t.Errorf("facts from %d after %d", first, facts)
				}
				facts += len(told)
			}, journal.FollowOptions{Unanswered: func(err error) {
				if outages++; !errors.Is(err, errDown) {
					t.Errorf("told %v", err)
				}
			}})
			if err == nil && s.Status() != status.RunSucceeded {
				err = fmt.Errorf("it is %s", s.Status())
			}
			ends <- err
		}()
		time.Sleep(3 * time.Second)
		far.noRead.Store(nil)
		time.Sleep(3 * time.Second)
		far.noRead.Store(&errDown)
		time.Sleep(3 * time.Minute)
		select {
		case err := <-ends:
			t.Fatalf("ended while the store did not answer: %v", err)
		default:
		}
		far.noRead.Store(nil)
		if err := <-ends; err != nil {
			t.Error(err)
		}
		if outages != 2 {
			t.Errorf("told of %d outages, want 2", outages)
		}
		op := &operator.Operator{Store: far, Defs: journal.NewDefinitions(far, nil)}
		far.noRead.Store(&errDown)
		go func() { ends <- op.Answer(t.Context(), run, 1) }()
		time.Sleep(time.Minute)
		far.noRead.Store(nil)
		var refused *operator.RefusedError
		if err := <-ends; !errors.As(err, &refused) {
			t.Errorf("Answer = %v, want that the run had ended before", err)
		}
		n.drain(t)
	})
}

// A node that waits for another engine's run waits on while the store does not
// answer.
func TestWaitOutlastsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(context.Context, int) error { time.Sleep(8 * time.Second); return nil })
		owner := w.start()
		run := w.submit(owner, "order", nil)
		far := w.faulty()
		other := w.start()
		far.noRead.Store(&errDown)
		ends := make(chan error, 1)
		go func() { _, err := other.Wait(t.Context(), run); ends <- err }()
		time.Sleep(3 * time.Minute)
		far.noRead.Store(nil)
		if err := <-ends; err != nil {
			t.Error(err)
		}
		other.drain(t)
		owner.drain(t)
	})
}

// What cannot pass is told at once, and the end of the context ends the waiting.
func TestFollowEnds(t *testing.T) {
	for name, want := range map[string]error{
		"not found":      store.ErrNotFound,
		"another schema": &store.SchemaError{Store: "test", Have: 1, Want: 2},
		"a loss":         &store.LossError{Store: "test"},
		"a wrong key":    &crypt.KeyError{},
		"damage":         storekit.Damaged(errors.New("a page is bad")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				n := w.start()
				run := w.submit(n, "order", nil)
				far := w.faulty()
				err := fmt.Errorf("read: %w", want)
				far.noRead.Store(&err)
				began := time.Now()
				_, got := journal.Reader{Store: far, Defs: journal.NewDefinitions(far, nil)}.Follow(t.Context(), run, 1, nil, journal.FollowOptions{})
				if !errors.Is(got, want) || time.Since(began) != 0 {
					t.Errorf("Follow = %v after %s, want %v at once", got, time.Since(began), want)
				}
				n.drain(t)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		n := w.start()
		run := w.submit(n, "order", nil)
		far := w.faulty()
		far.noRead.Store(&errDown)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := (journal.Reader{Store: far, Defs: journal.NewDefinitions(far, nil)}).Follow(ctx, run, 1, nil, journal.FollowOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow = %v, want the context's end", err)
		}
		n.drain(t)
	})
}
