package limits

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/quota"
)

// plenty is a Capacity without limits of its own.
type plenty struct{}

func (plenty) Slot(invoke.AgentSpec) machine.Slot { return machine.Slot{Free: 1 << 20} }
func (plenty) Reserve(invoke.AgentSpec, int) bool { return true }
func (plenty) Release(invoke.AgentSpec, int)      {}
func (plenty) OnFree(func(string))                {}

// A flaky store answers no question while broken is true.
type flaky struct {
	*memory.Store
	mu     sync.Mutex
	broken bool
}

func (f *flaky) down(broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = broken
}

func (f *flaky) ShareSlots(ctx context.Context, engine store.EngineID, ask quota.SlotAsk) (quota.SlotShare, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		return quota.SlotShare{}, errors.New("no answer")
	}
	return f.Store.ShareSlots(ctx, engine, ask)
}

// A bench is a Limits with its surroundings.
type bench struct {
	*Limits
	st      *flaky
	mu      sync.Mutex
	waiting map[string]int
	freed   map[string]int
	later   map[string]int
	halted  atomic.Bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{st: &flaky{Store: memory.New(memory.Options{})}, waiting: map[string]int{}, freed: map[string]int{}, later: map[string]int{}}
	id, err := b.st.Join(t.Context(), "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &clock.Clock{}
	c.Ticked(time.Now(), time.Now(), 24*time.Hour)
	count := func(m map[string]int) func(string) {
		return func(key string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			m[key]++
		}
	}
	b.Limits = New(plenty{}, Config{
		Store: b.st, Engine: id, Clock: c, Outage: outage.New(slog.New(slog.DiscardHandler)),
		Waiting: func(key string) int {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.waiting[key]
		},
		Free: count(b.freed), Later: count(b.later), Halted: b.halted.Load,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return b
}

// wait puts runs in line for an agent, and gives the Limits time for its question.
func (b *bench) wait(spec invoke.AgentSpec, runs int) {
	b.mu.Lock()
	b.waiting[spec.Key] = runs
	b.mu.Unlock()
	b.Want(spec)
	time.Sleep(retryEvery)
	synctest.Wait()
}

func limitedAgent(key string, most int, rate dsl.Agent) invoke.AgentSpec {
	rate.Name, rate.Plugin, rate.MaxConcurrency = "far", "far", most
	return invoke.AgentSpec{Agent: &rate, Key: key}
}

// start reserves a slot and asks for the right to start a call of one second.
func (b *bench) start(spec invoke.AgentSpec) bool {
	if !b.Reserve(spec, 1) {
		return false
	}
	if _, ok := b.Start(spec, b.cfg.Clock.Now().Add(time.Second)); ok {
		return true
	}
	b.Release(spec, 1)
	return false
}

// Two versions of an agent share its slots, and the smaller number counts. A slot that one of them
// gives back is offered to the other one, too.
func TestVersionsOfAnAgentShareItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		one, two := limitedAgent("one", 2, dsl.Agent{}), limitedAgent("two", 5, dsl.Agent{})
		b.wait(one, 3)
		b.wait(two, 3)
		started := 0
		for range 3 {
			for _, spec := range []invoke.AgentSpec{one, two} {
				if b.start(spec) {
					started++
				}
			}
		}
		if started != 2 {
			t.Errorf("%d calls started, want 2", started)
		}
		before := b.freed["two"]
		b.Release(one, 1)
		if b.freed["two"] == before {
			t.Error("no run of the other version was notified of the free slot")
		}
	})
}

// An engine that stops at once cuts off its calls, and their services may still be at work. So it gives
// no slots back, and no other engine gets them before the engine's row does not count any more.
func TestEngineThatStopsAtOnceGivesNoSlotsBack(t *testing.T) {
	for _, halted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			spec := limitedAgent("one", 2, dsl.Agent{})
			b.wait(spec, 2)
			for range 2 {
				if !b.start(spec) {
					t.Fatal("a call did not start")
				}
			}
			b.wait(spec, 0)
			other, err := b.st.Join(t.Context(), "other", time.Hour, 1)
			if err != nil {
				t.Fatal(err)
			}
			ask := quota.SlotAsk{Limit: "far/far", Most: 2, Want: 2, Keep: answerValid, Linger: firstLinger}
			if _, err := b.st.ShareSlots(t.Context(), other, ask); err != nil { // it waits for slots from now on
				t.Fatal(err)
			}
			b.halted.Store(halted)
			b.Release(spec, 2)
			time.Sleep(3 * renewEvery)
			synctest.Wait()
			share, err := b.st.ShareSlots(t.Context(), other, ask)
			if err != nil {
				t.Fatal(err)
			}
			if got := share.Slots == 0; got != halted {
				t.Errorf("halted %t: the other engine has %d slots", halted, share.Slots)
			}
		})
	}
}

// An engine that gets no answer from the store starts no call any more after a while, and gets on
// when the store answers again.
func TestNoAnswerNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		spec := limitedAgent("one", 2, dsl.Agent{})
		b.wait(spec, 2)
		if !b.start(spec) {
			t.Fatal("no call may start")
		}
		b.st.down(true)
		time.Sleep(answerValid / 2)
		if !b.start(spec) {
			t.Error("no call may start, although the engine's row still counts")
		}
		b.Release(spec, 1)
		time.Sleep(answerValid)
		if b.start(spec) {
			t.Error("a call started although the row may have passed")
		}
		b.st.down(false)
		b.wait(spec, 1)
		time.Sleep(2 * renewEvery)
		if !b.start(spec) {
			t.Error("no call may start after the store has answered again")
		}
	})
}

// An idle engine gives its slots back after a while.
func TestIdleEngineGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		spec := limitedAgent("one", 1, dsl.Agent{})
		b.wait(spec, 1)
		if !b.start(spec) {
			t.Fatal("no call may start")
		}
		b.wait(spec, 0)
		b.Release(spec, 1)
		time.Sleep(idleFor + 5*renewEvery)
		other, err := b.st.Join(t.Context(), "other", time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		share, err := b.st.ShareSlots(t.Context(), other, quota.SlotAsk{Limit: "far/far", Most: 1, Want: 1, Keep: answerValid})
		if err != nil || share.Slots != 1 {
			t.Errorf("another engine got %+v, %v", share, err)
		}
	})
}

// If no call may start for a longer time, the runs in line are notified, so that they need not stay in
// memory. A call is not sent after its turn.
func TestRunsInLineLearnWhenTheNextCallMayStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var rate dsl.Agent
		rate.RateLimit.Calls, rate.RateLimit.Per = 1, time.Minute
		spec := limitedAgent("one", 0, rate)
		b.wait(spec, 1)
		by, ok := b.Start(spec, b.cfg.Clock.Now().Add(time.Minute))
		if !ok || time.Until(by) > slack(time.Minute) || time.Until(by) <= 0 {
			t.Fatalf("the first call: %t, to be sent within %s", ok, time.Until(by))
		}
		if _, ok := b.Start(spec, b.cfg.Clock.Now().Add(time.Minute)); ok {
			t.Error("a second call may start")
		}
		b.wait(spec, 1)
		if b.later["one"] == 0 {
			t.Error("the run in line was not notified")
		}
		if s := b.Slot(spec); s.Free != 0 || time.Until(s.Until) < 50*time.Second {
			t.Errorf("slot %+v", s)
		}
	})
}
