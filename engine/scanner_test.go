package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/storekit"
	"github.com/saga-engine/engine/engine/story"
)

// A countStore counts the statements that reach it.
type countStore struct {
	store.Full
	mu      sync.Mutex // protects the fields below
	calls   map[string]int
	granted int // passes that were permitted
}

func (s *countStore) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[what]++
}

func (s *countStore) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.granted = nil, 0
}

// count returns how many statements there were of a name, or of all.
func (s *countStore) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for name, calls := range s.calls {
		if what == "" || what == name {
			n += calls
		}
	}
	return n
}

func (s *countStore) Tick(ctx context.Context, e store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	s.note("Tick")
	return s.Full.Tick(ctx, e, lease, limit)
}

func (s *countStore) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	s.note("Pass")
	may, err := s.Full.Pass(ctx, name, period)
	if may && name == "foreign" {
		s.mu.Lock()
		s.granted++
		s.mu.Unlock()
	}
	return may, err
}

func (s *countStore) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	switch kind, err := storekit.KindOf(f); {
	case err != nil:
		return nil, err
	case kind == storekit.KindOrphans && f.Owners == store.OwnerDead:
		s.note("Abandoned")
	case kind == storekit.KindOrphans:
		s.note("Orphans")
	case kind == storekit.KindOverdue:
		s.note("Overdue")
	}
	return s.Full.Runs(ctx, f)
}

func (s *countStore) Fence(ctx context.Context, dead store.EngineID) (bool, error) {
	s.note("Fence")
	return s.Full.Fence(ctx, dead)
}

func (s *countStore) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	s.note("Messages")
	return s.Full.Messages(ctx, run, after, limit)
}

func (s *countStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	name := "LoadMany"
	if len(runs) == 1 {
		name = "Load"
	}
	s.note(name)
	return s.Full.Load(ctx, runs...)
}

// pause is a call that takes d.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// S19, S46, S49, S72: the runs of an engine that dies are gone on with by another by
// itself, soon after its lease.
func TestSurvivorsTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if n <= 20 {
				return pause(ctx, 8*time.Second)
			}
			return nil
		})
		first := w.start()
		second, third := w.start(), w.start()
		var runs []status.RunID
		for range 20 {
			runs = append(runs, w.submit(first, "order", nil))
		}
		time.Sleep(time.Second)
		first.kill(t)
		began := time.Now()
		for _, run := range runs {
			w.wait(second, run, status.RunSucceeded)
		}
		if d := time.Since(began); d > w.opts.Lease+2*time.Second {
			t.Errorf("took %s with a lease of %s", d, w.opts.Lease)
		}
		w.shop.wantEffects(t, map[string]string{"nobody": "nothing"})
		if live, err := store.Complete(w.mem).Live(t.Context()); err != nil || len(live) != 2 {
			t.Errorf("live = %+v, %v", live, err)
		}
		second.drain(t)
		third.drain(t)
	})
}

// T25: an engine that leaves in order is followed at once.
func TestLeavingHandsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(context.Context, int) error { time.Sleep(5 * time.Second); return nil })
		first := w.start()
		second := w.start()
		run := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		first.drain(t)
		began := time.Now()
		w.wait(second, run, status.RunSucceeded)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("the rest took %s", d)
		}
		if calls := w.shop.called("charge"); len(calls) != 1 {
			t.Errorf("charge was called %d times", len(calls))
		}
		second.drain(t)
	})
}

// S74, S76, S89, T18: an idle engine on a lease of 30 s asks its store at most six
// things a minute, and still finds what it is told of soon.
func TestIdleEngineIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := &countStore{Full: store.Complete(w.mem)}
		w.store, w.opts = store, engine.Options{Address: "test"}
		n := w.start()
		time.Sleep(10 * time.Minute)
		store.reset()
		time.Sleep(time.Hour)
		if got := store.count(""); got > 6*60 {
			t.Errorf("%d statements in an hour, want at most 360: %v", got, store.calls)
		}
		// Work nobody hints at is found within the longest pause.
		run := w.queued()
		began := time.Now()
		w.wait(n, run, status.RunSucceeded)
		if d := time.Since(began); d > 16*time.Second {
			t.Errorf("found after %s", d)
		}
		n.drain(t)

		// With hints it is found at once.
		w.store = w.mem
		n = w.start()
		time.Sleep(10 * time.Minute)
		began = time.Now()
		run = w.queued()
		w.wait(n, run, status.RunSucceeded)
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("found after %s although it was told", d)
		}
		n.drain(t)
	})
}

// S45: however many engines there are, one at a time passes over others' runs.
func TestOneForeignPassInAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := &countStore{Full: store.Complete(w.mem)}
		w.store = store
		var nodes []*testNode
		for range 10 {
			nodes = append(nodes, w.start())
		}
		time.Sleep(time.Minute)
		store.reset()
		time.Sleep(time.Minute)
		looks := store.count("Overdue")
		store.mu.Lock()
		granted := store.granted
		store.mu.Unlock()
		if limit := int(time.Minute/w.opts.WithDefaults().MaxScan) + 1; granted > limit || granted == 0 {
			t.Errorf("%d passes in a minute, want at most %d", granted, limit)
		}
		if looks > granted {
			t.Errorf("%d looks at others' runs in %d passes", looks, granted)
		}
		for _, n := range nodes {
			n.drain(t)
		}
	})
}

// S65: waiting in the queue is told apart from a failure: by the age of the queue, and by start_by.
func TestAgeOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // ids of runs have no time before 2020
		w := newWorld(t, `
agent "shop" { plugin = "shop" }
workflow "long" {
  step "only" {
    action  = agent.shop.book
    timeout = "10m"
    input { name = "book" }
  }
}`)
		w.opts.MaxRunMemory = 1 // one run fills the memory
		gate := make(chan struct{})
		w.shop.on("book", func(context.Context, int) error { <-gate; return nil })
		n := w.start()
		first := w.submit(n, "long", nil)
		cfg := engine.Config{Store: w.mem, Options: engine.Options{Address: "apply"}}
		late, err := engine.Enqueue(t.Context(), cfg, engine.Submission{Definition: w.def, Workflow: "long", Vars: w.vars("long", nil), StartBy: time.Now().Add(3 * time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if age := n.Status().QueueAge; age < time.Minute || age > 2*time.Minute {
			t.Errorf("after two minutes the queue is %v old", age)
		}
		time.Sleep(2 * time.Minute)
		close(gate)
		w.wait(n, first, status.RunSucceeded)
		state := w.wait(n, late.Run, status.RunFailed)
		if f := state.Run().Failure; f.Code != "not_started" {
			t.Errorf("failure = %+v", f)
		}
		if calls := w.shop.called("book"); len(calls) != 1 {
			t.Errorf("book was called %d times", len(calls))
		}
		time.Sleep(time.Minute)
		if age := n.Status().QueueAge; age != 0 {
			t.Errorf("the empty queue is %v old", age)
		}
		n.drain(t)
	})
}

// S14, S55, S65, S75: runs that nobody owns show whole, wait without a failure,
// and are each claimed once, whoever looks.
func TestRunsOfNobodyAreClaimedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		var all []engine.Submission
		for i := range 120 {
			all = append(all, engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Name: fmt.Sprintf("o-%d", i)})
		}
		cfg := engine.Config{Store: w.mem, Options: engine.Options{Address: "apply", Writers: 3}}
		subs, err := engine.EnqueueAll(t.Context(), cfg, all)
		if err != nil || len(subs) != 120 {
			t.Fatalf("EnqueueAll = %d, %v", len(subs), err)
		}
		again, err := engine.EnqueueAll(t.Context(), cfg, all[:5])
		if err != nil || !again[0].Exists || again[4].Run != subs[4].Run {
			t.Errorf("again = %+v, %v, want the same runs", again, err)
		}
		steps, err := w.mem.StepRows(t.Context(), subs[0].Run)
		if err != nil || len(steps) != 3 {
			t.Errorf("steps = %+v, %v, want all three", steps, err)
		}
		if head, _, err := store.LoadRun(t.Context(), w.mem, subs[0].Run); err != nil || head.State != status.RunQueued || head.Owner != 0 {
			t.Errorf("head = %+v, %v, want it queued and nobody's", head, err)
		}
		time.Sleep(10 * time.Minute) // waiting burns nothing
		w.opts.ClaimBatch = 32
		var nodes []*testNode
		for range 4 {
			nodes = append(nodes, w.start())
		}
		for _, s := range subs {
			state := w.wait(nodes[0], s.Run, status.RunSucceeded)
			for i := range 3 {
				if f := story.Node(state, nil, i).Failures; f != 0 {
					t.Errorf("run %d step %d shows %d failures", s.Run, i, f)
				}
			}
			records := w.records(s.Run)
			taken := 0
			for _, r := range records {
				if _, ok := r.Event().(machine.TakenOver); ok {
					taken++
				}
			}
			if taken != 1 {
				t.Errorf("run %d was claimed %d times", s.Run, taken)
			}
		}
		if calls := w.shop.called("book"); len(calls) != 120 {
			t.Errorf("book was called %d times, want 120", len(calls))
		}
		for _, n := range nodes {
			n.drain(t)
		}
	})
}

// S75: an engine whose runs wait for agents leaves runs of nobody to others.
func TestClaimingLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(context.Context, int) error { time.Sleep(time.Second); return nil })
		w.opts.ClaimBatch = 10
		w.cfg = func(c *engine.Config) { c.Capacity = &seats{limit: 2} }
		var all []engine.Submission
		for range 100 {
			all = append(all, engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)})
		}
		subs, err := engine.EnqueueAll(t.Context(), engine.Config{Store: w.mem}, all)
		if err != nil {
			t.Fatal(err)
		}
		first := w.start()
		time.Sleep(5 * time.Second)
		mine := 0
		for _, s := range subs {
			if head, _, err := store.LoadRun(t.Context(), w.mem, s.Run); err != nil {
				t.Fatal(err)
			} else if head.Owner == first.Engine() {
				mine++
			}
		}
		if mine == 0 || mine > 40 {
			t.Errorf("one engine with two slots took %d of 100 runs", mine)
		}
		second := w.start()
		for _, s := range subs {
			w.wait(second, s.Run, status.RunSucceeded)
		}
		first.drain(t)
		second.drain(t)
	})
}

// S37, S61: a run whose live owner does not get on with it is taken from it,
// after a while, in one row.
func TestOverdueRunOfALiveOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		wf := w.def.Workflow("order")
		good := wf.Steps[1].Settings
		var bad atomic.Bool
		wf.Steps[1].Settings = func(s *dsl.Scope) (*dsl.Settings, error) {
			if bad.Load() {
				panic("a mistake")
			}
			return good(s)
		}
		stuck := w.start()
		run := w.submit(stuck, "order", nil)
		time.Sleep(time.Second)
		bad.Store(true) // deciding on the expiry panics: the engine quarantines the run
		time.Sleep(20 * time.Second)
		if stuck.Quarantined()[run] == nil {
			t.Fatal("the run was not quarantined")
		}
		bad.Store(false)
		w.shop.on("charge", nil)
		second := w.start()
		began := time.Now()
		within(t, time.Hour, "the takeover", func(ctx context.Context) error {
			_, err := second.Wait(ctx, run)
			return err
		})
		w.wait(second, run, status.RunSucceeded)
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("taken over after %s", d)
		}
		if before, after := w.expiredAtTakeover(run); before != 1 || after != 0 {
			t.Errorf("%d attempts had expired before the takeover, %d after it, want 1 and 0", before, after)
		}
		second.drain(t)
		stuck.drain(t)
	})
}

// expiredAtTakeover returns how many attempts without an answer the last takeover
// of a run found past their complete-by, and how many of them it left open.
func (w *world) expiredAtTakeover(run status.RunID) (before, after int) {
	w.t.Helper()
	wf := w.def.Workflow("order")
	state := machine.NewState()
	for _, rec := range w.records(run) {
		_, taken := rec.Event().(machine.TakenOver)
		if taken {
			before = len(state.ExpiredAttempts(wf, rec.At()))
		}
		state.Apply(rec)
		if taken {
			after = len(state.ExpiredAttempts(wf, rec.At()))
		}
	}
	return before, after
}

// S37, S61: overdue runs of a live owner that cannot be worked on here do not
// keep this engine from taking those that can, however many stand before them.
func TestOverdueRunsBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		w.opts.ClaimBatch = 2
		owner, err := w.mem.Join(t.Context(), "does nothing", 24*time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		writer, err := w.mem.OpenWriter(t.Context(), owner, 0)
		if err != nil {
			t.Fatal(err)
		}
		var last status.RunID
		for i := range 9 {
			run := w.queued()
			_, rows, err := store.LoadRun(t.Context(), w.mem, run)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			tr := store.Transition{Run: run, Seq: int32(len(rows)), At: at, Owner: &owner, NextCheck: at, Data: emptyRow(t, run, rows, at)}
			if last = run; i < 8 {
				tr.Data = []byte("written by nobody")
			}
			if out, err := writer.Commit(t.Context(), []store.Transition{tr}); err != nil || !out[0].Landed {
				t.Fatalf("commit = %+v, %v", out, err)
			}
			time.Sleep(time.Millisecond) // the last is the least overdue
		}
		w.shop.on("charge", nil)
		n := w.start()
		within(t, time.Minute, "the run behind the others", func(ctx context.Context) error {
			_, err := n.Wait(ctx, last)
			return err
		})
		w.check(last)
		n.drain(t)
	})
}

// S74, S75: taking over from an engine that died costs nothing for the runs of
// nobody that wait in line, however many they are.
func TestTakeoverBesideALongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		w.opts.ClaimBatch = 10
		dying := w.start()
		run := w.submit(dying, "order", nil)
		time.Sleep(time.Second)
		counts := &countStore{Full: store.Complete(w.mem)}
		w.store = counts
		w.cfg = func(c *engine.Config) { c.Capacity = &seats{limit: 1} }
		busy := w.start()
		for range 20 { // it has no room for more
			w.submit(busy, "order", nil)
		}
		dying.kill(t)
		for range 400 {
			w.queued()
		}
		counts.reset()
		time.Sleep(2 * w.opts.Lease)
		if head, _, err := store.LoadRun(t.Context(), w.mem, run); err != nil || head.Owner != busy.Engine() {
			t.Errorf("head = %+v, %v, want the run of the dead engine taken over", head, err)
		}
		if got := counts.count("LoadMany"); got > 10 {
			t.Errorf("pages of runs were read %d times for one run: %v", got, counts.calls)
		}
		busy.kill(t)
	})
}

// A poorly equipped engine checks agents as a pool does.
type poorly struct {
	invoke.Invoker
	gone func(plugin string) bool
}

func (m poorly) Check(_ context.Context, spec invoke.AgentSpec) error {
	if m.gone(spec.Agent.Plugin) {
		return errors.New("no such agent here")
	}
	return nil
}

// S49, S77: a run whose agent is missing here shows as a trouble, is not looked
// at again and again, and goes to an engine that has the agent.
func TestRunWithoutAgentIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		run := w.queued()
		store := &countStore{Full: store.Complete(w.mem)}
		w.store = store
		w.cfg = func(c *engine.Config) {
			c.Invoker = poorly{w.inv, func(string) bool { return true }}
		}
		poor := w.start()
		time.Sleep(time.Minute)
		if err := poor.Quarantined()[run]; err == nil || !strings.Contains(err.Error(), "no such agent") {
			t.Errorf("trouble = %v", err)
		}
		store.reset()
		time.Sleep(time.Minute)
		if got := store.count("LoadMany"); got > 4 {
			t.Errorf("the run was looked at %d times in a minute", got)
		}
		w.cfg, w.store = nil, w.mem
		rich := w.start()
		w.wait(rich, run, status.RunSucceeded)
		poor.drain(t)
		rich.drain(t)
	})
}

// S68, S46: one pass of a Supervisor alone raises what is due, starts nothing,
// and leaves the run to the next engine.
func TestSuperviseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderFlow, `deadline = "1h"`, `deadline = "30s"`, 1))
		w.shop.on("book", block)
		first := w.start()
		run := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		first.kill(t)
		cfg := engine.Config{Store: w.mem, Observer: w.story, Options: engine.Options{Address: "cron", Lease: w.opts.Lease}}
		if p, err := engine.SuperviseOnce(t.Context(), cfg); err != nil || p.Taken != 0 {
			t.Errorf("SuperviseOnce = %+v, %v, want nothing: the lease is good", p, err)
		}
		time.Sleep(time.Minute)
		starts := func() int { return strings.Count(w.transcript(run), "attempt_started") }
		began := starts()
		calls := len(w.shop.calls)
		p, err := engine.SuperviseOnce(t.Context(), cfg)
		if err != nil || !p.Foreign || p.Taken != 1 {
			t.Errorf("SuperviseOnce = %+v, %v, want one run", p, err)
		}
		head, _, err := store.LoadRun(t.Context(), w.mem, run)
		if err != nil || head.State != status.RunCompensating && head.State != status.RunParked {
			t.Errorf("head = %+v, %v, want what its deadline asks for", head, err)
		}
		if len(w.shop.calls) != calls {
			t.Error("an agent was called")
		}
		if after := starts(); after != began {
			t.Errorf("the pass recorded the start of a call that it cannot make:\n%s", w.transcript(run))
		}
		if live, err := store.Complete(w.mem).Live(t.Context()); err != nil || len(live) != 0 {
			t.Errorf("live = %+v, %v: it did not leave", live, err)
		}
		next := w.start()
		within(t, time.Minute, "the rest", func(ctx context.Context) error {
			s, err := next.Wait(ctx, run)
			if err == nil && !s.Status().Final() && !s.Status().NeedsHuman() {
				err = fmt.Errorf("run is %v", s.Status())
			}
			return err
		})
		next.drain(t)
	})
}

// S37, S68: one pass takes a run from an owner that holds its lease and does not
// go on with the run: time has passed, and the pass says so.
func TestSuperviseOnceOverdueOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderFlow, `deadline = "1h"`, `deadline = "30s"`, 1))
		var bad atomic.Bool
		wf := w.def.Workflow("order")
		good := wf.Steps[1].Settings
		wf.Steps[1].Settings = func(s *dsl.Scope) (*dsl.Settings, error) {
			if bad.Load() {
				panic("a mistake")
			}
			return good(s)
		}
		stuck, run := w.under("charge")
		bad.Store(true) // deciding on the expiry panics: the engine leaves the run alone
		time.Sleep(time.Minute)
		bad.Store(false)
		cfg := engine.Config{Store: w.mem, Options: engine.Options{Address: "cron", Lease: w.opts.Lease}}
		if p, err := engine.SuperviseOnce(t.Context(), cfg); err != nil || p.Taken != 1 {
			t.Errorf("SuperviseOnce = %+v, %v, want one run", p, err)
		}
		if head, _, err := store.LoadRun(t.Context(), w.mem, run); err != nil || head.State != status.RunCompensating && head.State != status.RunParked {
			t.Errorf("head = %+v, %v, want what its deadline asks for", head, err)
		}
		if before, after := w.expiredAtTakeover(run); before != 1 || after != 0 {
			t.Errorf("%d attempts had expired before the takeover, %d after it, want 1 and 0", before, after)
		}
		w.shop.on("charge", nil)
		next := w.start()
		w.wait(next, run, status.RunCompensated)
		next.drain(t)
		stuck.drain(t)
	})
}

// S45 (T7): engines go by the store's clock, whatever their own says.
func TestStoreClockAnHourAhead(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				w.mem = memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(skew) }})
				w.store = w.mem
				w.shop.on("charge", func(ctx context.Context, n int) error {
					if n == 1 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
				first := w.start()
				second := w.start()
				began := time.Now()
				run := w.submit(first, "order", nil)
				w.wait(first, run, status.RunSucceeded)
				if d := time.Since(began); d < 10*time.Second || d > 12*time.Second {
					t.Errorf("took %s, want one timeout of 10 s", d)
				}
				other := w.submit(first, "order", nil)
				synctest.Wait() // its charge hangs
				w.shop.on("charge", nil)
				first.kill(t)
				began = time.Now()
				w.wait(second, other, status.RunSucceeded)
				if d := time.Since(began); d > w.opts.Lease+2*time.Second {
					t.Errorf("taken over after %s", d)
				}
				second.drain(t)
			})
		})
	}
}

// A forgetfulStore has lost rows.
type forgetfulStore struct {
	*faultStore
	forget bool
}

func (s *forgetfulStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	loaded, err := s.faultStore.Load(ctx, runs...)
	if s.forget {
		for i := range loaded {
			loaded[i].Rows = loaded[i].Rows[:1]
		}
	}
	return loaded, err
}

// S48: an engine that finds that the store lost what had been committed stops
// and says so, whether the store tells or the engine finds out.
func TestLossStopsTheEngine(t *testing.T) {
	t.Run("the store tells", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, orderFlow)
			st := w.faulty()
			n := w.start()
			st.mu.Lock()
			st.plan = func(int, bool) error {
				return fmt.Errorf("commit: %w", &store.LossError{Store: "postgres", From: 1, To: 2, Known: "0/5000", Switch: "0/4000"})
			}
			st.mu.Unlock()
			if _, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)}); err == nil {
				t.Error("a run was accepted")
			}
			var loss *store.LossError
			if err := <-n.done; !errors.As(err, &loss) || loss.To != 2 {
				t.Errorf("Run = %v, want a LossError", err)
			}
		})
	})
	t.Run("a run has fewer rows than it had", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, orderFlow)
			w.shop.on("charge", block)
			faults := w.faulty()
			st := &forgetfulStore{faultStore: faults}
			w.store = st
			n := w.start()
			run := w.submit(n, "order", nil)
			time.Sleep(time.Second)
			faults.down.Store(true)
			time.Sleep(8 * time.Second)
			st.forget = true
			faults.down.Store(false)
			var loss *store.LossError
			if err := <-n.done; !errors.As(err, &loss) || loss.Run != int64(run) {
				t.Errorf("Run = %v, want a LossError of the run", err)
			}
		})
	})
}

// S47: passes are reported with how late they were.
func TestPassesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		seen := &passes{}
		w.cfg = func(c *engine.Config) { c.Observer = seen }
		store := w.faulty()
		n := w.start()
		if st := n.Status(); st.Engine != n.Engine() || st.Lease <= 0 || st.Address != "test" {
			t.Errorf("status = %+v", st)
		}
		w.submit(n, "order", nil)
		time.Sleep(11 * time.Second)
		if st := n.Status(); st.Runs != 1 || st.LastPass.IsZero() {
			t.Errorf("status = %+v", st)
		}
		seen.mu.Lock()
		if seen.due == 0 || seen.lag > 10*time.Millisecond {
			t.Errorf("told %d, late by up to %s", seen.due, seen.lag)
		}
		seen.mu.Unlock()
		store.down.Store(true)
		time.Sleep(10 * time.Second)
		store.down.Store(false)
		time.Sleep(10 * time.Second)
		seen.mu.Lock()
		if seen.fenced != 1 {
			t.Errorf("fenced %d times, want once", seen.fenced)
		}
		seen.mu.Unlock()
		n.kill(t)
	})
}

type passes struct {
	engine.NoObserver
	mu          sync.Mutex
	due, fenced int
	lag         time.Duration
}

func (p *passes) Pass(s engine.PassStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due += s.Due
	p.lag = max(p.lag, s.Lag)
}

func (p *passes) Fenced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fenced++
}

// T9, S45: a Supervisor that freezes after it was permitted a pass costs the
// others one period, nothing more, and does no harm when it goes on.
func TestFrozenSupervisorCostsOnePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, _ int) error { return pause(ctx, 5*time.Second) })
		first := w.start()
		run := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		frozen := &freezingStore{Full: store.Complete(w.mem), thaw: make(chan struct{})}
		w.store = frozen
		zombie := w.start()
		w.store = w.mem
		healthy := w.start()
		first.kill(t)
		w.shop.on("charge", nil)
		began := time.Now()
		w.wait(healthy, run, status.RunSucceeded)
		if d := time.Since(began); d > w.opts.Lease+4*time.Second {
			t.Errorf("taken over after %s", d)
		}
		close(frozen.thaw)
		time.Sleep(time.Minute)
		s := w.check(run)
		if story.Node(s, nil, 1).Failures > 1 {
			t.Errorf("charge shows %d failures, want at most one", story.Node(s, nil, 1).Failures)
		}
		healthy.drain(t)
		zombie.drain(t)
	})
}

// A freezingStore stands still right after a pass was permitted.
type freezingStore struct {
	store.Full
	thaw chan struct{}
}

func (s *freezingStore) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	may, err := s.Full.Pass(ctx, name, period)
	if may {
		<-s.thaw
	}
	return may, err
}

// S19, T16: what needs nothing now costs memory when it is taken over, and no
// goroutine.
func TestTakeoverOfManyCostsNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.cfg = func(c *engine.Config) { c.Capacity = &seats{limit: 1} }
		w.shop.on("charge", block)
		first := w.start()
		var runs []status.RunID
		for range 500 {
			runs = append(runs, w.submit(first, "order", nil))
		}
		time.Sleep(time.Second)
		first.kill(t)
		second := w.start()
		time.Sleep(w.opts.Lease + 3*time.Second)
		synctest.Wait()
		goroutines := runtime.NumGoroutine()
		for _, run := range runs {
			if head, _, err := store.LoadRun(t.Context(), w.mem, run); err != nil || head.Owner != second.Engine() {
				t.Fatalf("head = %+v, %v, want it taken over", head, err)
			}
		}
		if goroutines > 60 {
			t.Errorf("%d goroutines for 500 runs", goroutines)
		}
		second.kill(t)
	})
}
