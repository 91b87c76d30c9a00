package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// S3, S19, S22, S23, S30, S49: an engine that dies before or after any of its
// commits leaves a run that another engine finishes, with no effect doubled
// and nothing but the store to go by.
func TestCrashAtEveryCommit(t *testing.T) {
	worlds := []struct {
		name    string
		prepare func(*world)
		want    status.RunState
		effects map[string]string
	}{
		{"succeeds", func(*world) {}, status.RunSucceeded,
			map[string]string{"reserve": "done", "charge": "done", "book": "done"}},
		{"is undone", func(w *world) {
			w.shop.on("book", func(context.Context, int) error { return &sdk.Failure{Code: "no_carrier", Permanent: true} })
		}, status.RunCompensated, map[string]string{"reserve": "undone", "charge": "undone", "book": "nothing"}},
		{"is repeated", func(w *world) {
			w.shop.on("charge", func(_ context.Context, n int) error {
				if n == 1 {
					return &sdk.Failure{Code: "busy"}
				}
				return nil
			})
		}, status.RunSucceeded, map[string]string{"reserve": "done", "charge": "done", "book": "done"}},
	}
	for _, tt := range worlds {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after=%t", tt.name, after), func(t *testing.T) {
				for k, crashed := 1, true; crashed; k++ {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, strings.Replace(orderFlow, "action  = agent.shop.book", "action  = agent.shop.book\n    idempotent = true", 1))
						tt.prepare(w)
						crashed = w.crashAt(k, after, tt.want, tt.effects)
					})
				}
			})
		}
	}
}

// crashAt runs the order until the first engine dies at its k-th commit, has a
// second one finish it, and reports whether there was a k-th commit.
func (w *world) crashAt(k int, after bool, want status.RunState, effects map[string]string) bool {
	t := w.t
	store := w.faulty()
	first := w.start()
	crashed := false
	store.plan = func(n int, isAfter bool) error {
		if n == k && isAfter == after {
			crashed = true
			store.down.Store(true)
			first.StopNow()
			return errDown
		}
		return nil
	}
	s, err := first.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Name: "o-1"})
	accepted := err == nil // else the run is named where it may be stored
	if accepted {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		waited := make(chan error, 1)
		go func() {
			_, err := first.Wait(ctx, s.Run)
			waited <- err
		}()
		select {
		case <-first.Done():
			cancel()
		case err := <-waited:
			if err != nil && !crashed {
				t.Errorf("commit %d: Wait = %v", k, err)
			}
		}
		cancel()
	}
	first.kill(t)
	w.store = w.mem
	second := w.start()
	// Whoever asked asks again, under the same name: attached or started anew (I1).
	again, err := second.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Name: "o-1"})
	if err != nil {
		t.Fatalf("commit %d: submit again: %v", k, err)
	}
	if accepted && again.Run != s.Run {
		t.Errorf("commit %d: an accepted run is lost: %d, now %d", k, s.Run, again.Run)
	}
	time.Sleep(w.opts.Lease) // the dead engine's lease passes
	if _, err := second.TakeOver(t.Context()); err != nil {
		t.Fatalf("commit %d: TakeOver: %v", k, err)
	}
	within(t, time.Hour, fmt.Sprintf("commit %d", k), func(ctx context.Context) error {
		s, err := second.Wait(ctx, again.Run)
		if err == nil && s.Status() != want {
			err = fmt.Errorf("run is %v, want %v\n%s", s.Status(), want, w.transcript(again.Run))
		}
		return err
	})
	w.check(again.Run)
	w.shop.wantEffects(t, effects)
	second.drain(t)
	return crashed
}

// S39, I4: a commit whose answer is lost is found to have landed, and what it
// asked for is done by the process that landed it (promise 12).
func TestLostAnswerOfTheStore(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				store := w.faulty()
				store.plan = func(n int, isAfter bool) error {
					if n%2 == 1 && isAfter == after { // every other sending
						return errDown
					}
					return nil
				}
				n := w.start()
				start := time.Now()
				run := w.submit(n, "order", nil)
				w.wait(n, run, status.RunSucceeded)
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("took %s: an attempt was left to its complete-by", d)
				}
				for _, name := range []string{"reserve", "charge", "book"} {
					if calls := w.shop.called(name); len(calls) != 1 {
						t.Errorf("%s was called %d times", name, len(calls))
					}
				}
				n.drain(t)
			})
		})
	}
}

// S21, S28, S29, T8: an engine that freezes past its lease is fenced. Its later commits are
// refused, and its calls have an older token. It continues with a new number, without the
// runs that it has lost.
func TestFrozenEngineIsFencedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			time.Sleep(4 * time.Second)
			return nil
		})
		store := w.faulty()
		frozen := w.start()
		run := w.submit(frozen, "order", nil)
		time.Sleep(time.Second) // charge is under way
		thaw := make(chan struct{})
		store.frozen.Store(thaw)
		former := frozen.Engine()

		w.store = w.mem
		second := w.start()
		if n, err := second.TakeOver(t.Context()); n != 0 || err != nil {
			t.Errorf("TakeOver from a live engine = %d, %v, want 0", n, err)
		}
		if err := second.Adopt(t.Context(), run); !errors.Is(err, engine.ErrNotOwner) {
			t.Errorf("Adopt from a live engine = %v, want ErrNotOwner", err)
		}
		time.Sleep(4 * time.Second)
		if n, err := second.TakeOver(t.Context()); n > 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 1", n, err)
		}
		time.Sleep(2 * time.Second)
		close(thaw)
		w.wait(second, run, status.RunSucceeded)
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "charge": "done", "book": "done"})
		calls := w.shop.called("charge")
		if len(calls) != 2 || calls[0].fence >= calls[1].fence || calls[0].key != calls[1].key {
			t.Errorf("charge = %+v, want two calls, one key, rising fences", calls)
		}
		time.Sleep(10 * time.Second)
		if now := frozen.Engine(); now == former || now == 0 {
			t.Errorf("the frozen engine is %d, was %d: want a new number", now, former)
		}
		if err := frozen.Deliver(t.Context(), run, machine.TimePassed{}); err != nil && !errors.Is(err, engine.ErrNotOwner) {
			t.Errorf("Deliver = %v", err)
		}
		// It works on under its new number.
		again := w.submit(frozen, "order", nil)
		w.wait(frozen, again, status.RunSucceeded)
		frozen.drain(t)
		second.drain(t)
	})
}

// S19, S49: an engine whose lease lapses because the store was away takes its
// own runs over under a new number when the store is back.
func TestLapsedEngineGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			time.Sleep(2 * time.Second)
			return nil
		})
		store := w.faulty()
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Second)
		former := n.Engine()
		store.down.Store(true)
		time.Sleep(8 * time.Second)
		if calls := w.shop.called("book"); len(calls) > 0 {
			t.Error("a call was sent while the store was away")
		}
		store.down.Store(false)
		w.wait(n, run, status.RunSucceeded)
		if n.Engine() == former {
			t.Error("the engine kept its number although its lease had lapsed")
		}
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "charge": "done", "book": "done"})
		n.drain(t)
	})
}

// An answer that reached the engine before complete-by counts although its
// commit came after (language.md, What counts).
func TestAnswerInTimeCountsWhenTheStoreIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow+`
workflow "two" {
  deadline = "1h"
  step "quick" {
    action = agent.shop.charge
    input { name = "quick" }
  }
  step "book" {
    action  = agent.shop.book
    timeout = "10s"
    input { name = "book" }
  }
}`)
		w.opts.Lease = 2 * time.Minute
		store := w.faulty()
		w.shop.on("quick", func(ctx context.Context, n int) error {
			time.Sleep(8 * time.Second)
			store.down.Store(true) // the commit of this answer takes 20 s
			time.AfterFunc(20*time.Second, func() { store.down.Store(false) })
			return nil
		})
		w.shop.on("book", func(ctx context.Context, n int) error {
			time.Sleep(9 * time.Second) // of 10 s; it waits for that commit
			return nil
		})
		n := w.start()
		run := w.submit(n, "two", nil)
		s := w.wait(n, run, status.RunSucceeded)
		if calls := w.shop.called("book"); len(calls) != 1 {
			t.Errorf("book was called %d times, want once", len(calls))
		}
		if node := story.Node(s, nil, 1); node.Failures != 0 {
			t.Errorf("book shows %d failures, want none", node.Failures)
		}
		n.drain(t)
	})
}

// S19, T25: an engine that is told to stop starts nothing more, waits for what
// is in flight, and hands over; nothing is marked failed or cancelled, and the
// next engine goes on at once.
func TestDrainHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := w.faulty()
		w.shop.on("charge", func(ctx context.Context, n int) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		first := w.start()
		run := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		start := time.Now()
		first.drain(t)
		if d := time.Since(start); d < 3*time.Second || d > 5*time.Second {
			t.Errorf("draining took %s, want what the call still needed", d)
		}
		if _, err := first.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)}); !errors.Is(err, engine.ErrStopping) {
			t.Errorf("Submit = %v, want ErrStopping", err)
		}
		if calls := w.shop.called("book"); len(calls) != 0 {
			t.Error("a call was started while draining")
		}
		store.landed = nil
		second := w.start()
		if n, err := second.TakeOver(t.Context()); n > 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 1 at once", n, err)
		}
		start = time.Now()
		w.wait(second, run, status.RunSucceeded)
		if d := time.Since(start); d > time.Second {
			t.Errorf("the rest took %s", d)
		}
		for _, name := range []string{"reserve", "charge", "book"} {
			if calls := w.shop.called(name); len(calls) != 1 {
				t.Errorf("%s was called %d times, want once", name, len(calls))
			}
		}
		second.drain(t)
	})
}

// S49: an engine that stops waits for its calls in flight. Meanwhile it hands back
// each run without such a call at once, and another engine goes on with it.
func TestDrainHandsBackWhatNeedsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if n == 1 {
				time.Sleep(8 * time.Second)
				return nil
			}
			return &sdk.Failure{Code: "busy", Message: "try again later", RetryAfter: 5 * time.Second}
		})
		first := w.start()
		calling := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		waiting := w.submit(first, "order", nil)
		time.Sleep(200 * time.Millisecond) // between two attempts
		w.opts.OnlyOwnRuns = true
		second := w.start()
		ended := make(chan struct{})
		go func() {
			first.drain(t)
			close(ended)
		}()
		synctest.Wait()
		w.shop.on("charge", nil)
		if taken, err := second.TakeOver(t.Context()); taken != 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want the run that needs no call", taken, err)
		}
		w.wait(second, waiting, status.RunSucceeded)
		select {
		case <-ended:
			t.Error("the first engine has ended: the test proves less than it says")
		default:
		}
		<-ended
		if taken, err := second.TakeOver(t.Context()); taken != 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want the run whose call has ended", taken, err)
		}
		w.wait(second, calling, status.RunSucceeded)
		for _, run := range []status.RunID{calling, waiting} {
			w.check(run)
		}
		second.drain(t)
	})
}

// I8: the last engine hands nothing back while it waits for a call: a run that
// nobody owns would have a time in the past which nobody sees.
func TestDrainKeepsRunsWhereNoOtherEngineLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if n == 1 {
				time.Sleep(8 * time.Second)
				return nil
			}
			return &sdk.Failure{Code: "busy", Message: "try again later", RetryAfter: 5 * time.Second}
		})
		n := w.start()
		w.submit(n, "order", nil)
		time.Sleep(time.Second)
		waiting := w.submit(n, "order", nil)
		time.Sleep(200 * time.Millisecond) // between two attempts
		ended := make(chan struct{})
		go func() {
			n.drain(t)
			close(ended)
		}()
		time.Sleep(time.Second)
		if head, _, err := store.LoadRun(t.Context(), w.mem, waiting); err != nil || head.Owner == 0 {
			t.Errorf("the run's owner is %d, %v, want the engine that waits for its call", head.Owner, err)
		}
		<-ended
	})
}

// S46: Run may be started once, and a second stop ends it without waiting.
func TestStopNowDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Second)
		start := time.Now()
		n.stop()
		time.Sleep(time.Second)
		n.kill(t)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("stopping took %s", d)
		}
		if err := n.Run(t.Context()); err == nil {
			t.Error("a node ran twice")
		}
		if head, _, err := store.LoadRun(t.Context(), w.mem, run); err != nil || head.State != status.RunRunning {
			t.Errorf("run is %v, %v, want running: its lease expires and nothing is lost", head.State, err)
		}
	})
}

// Nothing is sent when no tick has succeeded for a lease, although commits
// still land.
func TestNothingIsSentWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := w.faulty()
		w.shop.on("charge", func(context.Context, int) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Second)
		store.noTick.Store(true)
		time.Sleep(8 * time.Second)
		if calls := w.shop.called("book"); len(calls) > 0 {
			t.Error("a call was sent without a lease")
		}
		if text := w.transcript(run); strings.Contains(text, "attempt_started book") {
			t.Errorf("an attempt was recorded without a lease:\n%s", text)
		}
		store.noTick.Store(false)
		w.wait(n, run, status.RunSucceeded)
		if calls := w.shop.called("book"); len(calls) != 1 {
			t.Errorf("book was called %d times, want once", len(calls))
		}
		n.drain(t)
	})
}

// live returns the engines that hold a lease.
func (w *world) live() []store.Member {
	w.t.Helper()
	members, err := store.Complete(w.mem).Live(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return members
}

// An engine that cannot commit does not renew its lease, so that one that can
// goes on with its runs.
func TestEngineThatCannotCommitLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := w.faulty()
		w.shop.on("charge", func(context.Context, int) error {
			time.Sleep(time.Second)
			return nil
		})
		first := w.start()
		before := w.live()
		run := w.submit(first, "order", nil)
		time.Sleep(500 * time.Millisecond)
		store.mu.Lock()
		store.plan = func(int, bool) error { return errDown }
		store.mu.Unlock()
		w.store = w.mem
		second := w.start()
		time.Sleep(500*time.Millisecond + 2*w.opts.Lease)
		alive := w.live()
		for _, m := range alive {
			if m.Engine == before[0].Engine {
				t.Error("the engine that cannot commit has renewed its lease")
			}
		}
		if len(alive) != 2 {
			t.Errorf("%d engines are alive, want 2: the first has given up and begun anew", len(alive))
		}
		if n, err := second.TakeOver(t.Context()); n > 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 1", n, err)
		}
		w.wait(second, run, status.RunSucceeded)
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "charge": "done", "book": "done"})
		store.mu.Lock()
		store.plan = nil
		store.mu.Unlock()
		time.Sleep(time.Minute)
		again := w.submit(first, "order", nil)
		w.wait(first, again, status.RunSucceeded)
		first.drain(t)
		second.drain(t)
	})
}

// A stale row is decided again on what the journal holds; nobody's event is
// lost and nothing is done for the row that did not land.
func TestStaleIsDecidedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		s := &seats{limit: 2}
		w.cfg = func(c *engine.Config) { c.Capacity = s }
		store := w.faulty()
		w.shop.on("reserve", func(context.Context, int) error {
			time.Sleep(time.Second)
			store.stale.Store(3)
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		start := time.Now()
		w.wait(n, run, status.RunSucceeded)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("took %s: an answer was lost", d)
		}
		for _, name := range []string{"reserve", "charge", "book"} {
			if calls := w.shop.called(name); len(calls) != 1 {
				t.Errorf("%s was called %d times, want once", name, len(calls))
			}
		}
		n.drain(t)
		if s.taken != 0 {
			t.Errorf("%d slots were not given back", s.taken)
		}
	})
}

// If a run id is taken, the submission does not succeed with it: another id is made.
func TestRunIDCollision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		st := w.faulty()
		st.taken.Store(2)
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		if left := st.taken.Load(); left != 0 {
			t.Errorf("%d of two ids were not tried", left)
		}
		if rows, err := w.mem.Runs(t.Context(), store.RunFilter{}); err != nil || len(rows) != 1 || rows[0].Run != run {
			t.Errorf("runs = %+v, %v, want the one that was accepted", rows, err)
		}
		n.drain(t)
	})
}

// I1: a submission that the store does not answer is given up after a bounded
// number of tries, and its caller is told that its outcome is open: which run to
// look for.
func TestSubmissionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := w.faulty()
		n := w.start()
		store.mu.Lock()
		store.plan = func(int, bool) error { return errDown }
		store.mu.Unlock()
		within(t, time.Hour, "the submission", func(ctx context.Context) error {
			s, err := n.Submit(ctx, engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)})
			if !errors.Is(err, errDown) || s.Run == 0 || ctx.Err() != nil {
				t.Errorf("Submit = %+v, %v, want the run that may be stored and the store's error", s, err)
			}
			return nil
		})
		store.mu.Lock()
		store.plan = nil
		store.mu.Unlock()
		n.drain(t)
	})
}

// T7: a store whose clock jumps never makes time fall within a run, and the
// run goes on. A timer ends once, and never before its time.
func TestStoreClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -time.Hour, "ahead": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, strings.Replace(orderFlow, `deadline = "1h"`, `deadline = "3h"`, 1)+clockFlow)
				start := time.Now().Add(24 * time.Hour)
				clock := func() time.Time {
					if now := time.Now().Add(24 * time.Hour); now.Sub(start) > 2*time.Second {
						return now.Add(jump)
					}
					return time.Now().Add(24 * time.Hour)
				}
				w.mem = memory.New(memory.Options{Now: clock})
				w.faulty()
				w.shop.on("charge", func(context.Context, int) error {
					time.Sleep(4 * time.Second)
					return nil
				})
				n := w.start()
				run := w.submit(n, "order", nil)
				until := clock().Add(10 * time.Minute)
				timers := w.submit(n, "clocks", map[string]string{"until": until.Format(time.RFC3339Nano)})
				w.wait(n, run, status.RunSucceeded)
				s := w.wait(n, timers, status.RunSucceeded)
				w.wantRings(timers, s, until)
				if hours := story.Node(s, nil, 1).StartedAt.Add(2 * time.Hour); clock().Before(hours) {
					t.Errorf("the timers ended at %s by the clock of the store, want %s", clock(), hours)
				}
				n.drain(t)
			})
		})
	}
}

// S46: an engine that has lost its lease and cannot join again because the
// store is away still obeys both stops.
func TestStopWhileTheStoreIsAway(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *testNode){
		"in order": func(t *testing.T, n *testNode) { n.drain(t) },
		"at once":  func(t *testing.T, n *testNode) { n.kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				store := w.faulty()
				n := w.start()
				run := w.submit(n, "order", nil)
				w.wait(n, run, status.RunSucceeded)
				thaw := make(chan struct{})
				store.frozen.Store(thaw)
				store.noJoin.Store(true)
				time.Sleep(5 * time.Second)
				close(thaw)
				time.Sleep(5 * time.Second)
				if e := n.Engine(); e != 0 {
					t.Errorf("engine %d goes on without a lease", e)
				}
				start := time.Now()
				stop(t, n)
				if d := time.Since(start); d > time.Second {
					t.Errorf("stopping took %s", d)
				}
			})
		})
	}
}

// S21, S55, I11: of many who submit one key at once one starts a run; the
// others are attached to it.
func TestSubmitOfOneKeyStartsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "order" {
  deadline = "1h"
  unique { key = var.id }
  variable "id" { type = string }
  step "reserve" {
    action = agent.shop.reserve
    input { name = var.id }
  }
}`)
		a, b := w.start(), w.start()
		var mu sync.Mutex
		var wg sync.WaitGroup
		runs, started := map[status.RunID]bool{}, 0
		for i := range 40 {
			n := []*testNode{a, b}[i%2]
			wg.Go(func() {
				s, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", map[string]string{"id": "k"})})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				runs[s.Run] = true
				if !s.Exists {
					started++
				}
			})
		}
		wg.Wait()
		if len(runs) != 1 || started != 1 {
			t.Errorf("%d runs, %d started, want one", len(runs), started)
		}
		for run := range runs {
			w.wait(a, run, status.RunSucceeded)
		}
		a.drain(t)
		b.drain(t)
	})
}

func TestSubmitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "order" {
  deadline = var.by
  unique { key = var.id }
  variable "id" { default = "" }
  variable "by" { default = "1h" }
  step "reserve" {
    action = agent.shop.reserve
    input { name = var.id }
  }
}`)
		w.opts.MaxValue = 1000
		n := w.start()
		tests := map[string]struct {
			s    engine.Submission
			want string
		}{
			"unknown workflow": {engine.Submission{Workflow: "ordr"}, "no such workflow"},
			"name too long":    {engine.Submission{Workflow: "order", Name: strings.Repeat("x", 101), Vars: w.vars("order", map[string]string{"id": "k"})}, "101"},
			"empty key":        {engine.Submission{Workflow: "order", Vars: w.vars("order", nil)}, "empty"},
			"bad deadline":     {engine.Submission{Workflow: "order", Vars: w.vars("order", map[string]string{"id": "k", "by": "soon"})}, "deadline"},
			"too large":        {engine.Submission{Workflow: "order", Vars: w.vars("order", map[string]string{"id": strings.Repeat("k", 2000)})}, "bytes"},
		}
		for name, tt := range tests {
			tt.s.Definition = w.def
			if _, err := n.Submit(t.Context(), tt.s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: Submit = %v, want an error with %q", name, err, tt.want)
			}
		}
		if rows, err := w.mem.Runs(t.Context(), store.RunFilter{}); err != nil || len(rows) != 0 {
			t.Errorf("refused submissions left %d runs, %v", len(rows), err)
		}
		n.drain(t)
	})
}

// slowStore takes longer than a lease to open the first writers.
type slowStore struct {
	store.Full
	slow time.Duration
	left int
}

func (s *slowStore) OpenWriter(ctx context.Context, id store.EngineID, n int) (store.Writer, error) {
	if s.left > 0 {
		s.left--
		time.Sleep(s.slow)
	}
	return s.Full.OpenWriter(ctx, id, n)
}

// S49: a lease that runs out before the engine has begun, on a machine that is
// busy, is no reason not to begin.
func TestLeaseRunsOutBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.store = &slowStore{Full: store.Complete(w.mem), slow: 2 * w.opts.Lease, left: 2}
		n := w.start()
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		n.drain(t)
	})
}
