package agents

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// TestReservedSlotsCountAmongProbes: while a circuit is half-open, no more slots
// are reserved than it lets probes through: the breaker hears of a call only
// when it begins.
func TestReservedSlotsCountAmongProbes(t *testing.T) {
	p := NewPool(Options{})
	defer p.Close()
	changes := make(chan struct{}, 10)
	p.OnFree(func(string) { changes <- struct{}{} })
	a := newAgent(p, invoke.AgentSpec{Agent: &dsl.Agent{
		Name: "a", MaxConcurrency: 10, Breaker: dsl.Breaker{TripAfter: 1, Cooldown: time.Millisecond, Probes: 2},
	}})
	done, err := a.breaker.allow()
	if err != nil {
		t.Fatal(err)
	}
	done(errBroken)
	a.breaker.report()
	for a.breaker.state() != CircuitHalfOpen {
		<-changes // the end of the cooldown frees slots
	}
	for n, want := range []bool{true, true, false} {
		if got := a.reserve(1); got != want {
			t.Errorf("reservation %d: %t, want %t", n+1, got, want)
		}
	}
	if slot := a.slot(); slot.Free != 0 || slot.Why == "" {
		t.Errorf("slot=%+v, want none", slot)
	}
}

// TestQuietAfterTheEnd: what an agent says of its progress after the call was
// given up reaches nobody: its maker may have forgotten the call.
func TestQuietAfterTheEnd(t *testing.T) {
	p := NewPool(Options{})
	defer p.Close()
	heard := 0
	f := &activeCall{
		agent: newAgent(p, invoke.AgentSpec{Agent: &dsl.Agent{Name: "a"}}),
		call:  invoke.Call{OnProgress: func(invoke.Progress) { heard++ }},
		done:  func(sdk.Reply, error) {},
	}
	f.progress(sdk.Heartbeat{})
	f.finish(sdk.Reply{}, nil)
	f.progress(sdk.Heartbeat{})
	f.progress(sdk.Checkpoint{Number: 1})
	if heard != 1 {
		t.Errorf("%d signs of progress were heard, want the one before the end", heard)
	}
}

// TestUnsentCallGoesToAnotherProcess: a call that a process has certainly not
// seen, because it had ended, is given to the next one and not back to its maker.
func TestUnsentCallGoesToAnotherProcess(t *testing.T) {
	p := NewPool(Options{}) // which finds no agent at all
	defer p.Close()
	a := newAgent(p, invoke.AgentSpec{Agent: &dsl.Agent{Name: "a", Plugin: "nothing"}})
	ends := make(chan error, 2)
	f := &activeCall{
		agent: a, life: &life{instance: a.instances[0], calls: 1, empty: make(chan struct{})}, counted: true, sent: true,
		call: invoke.Call{Request: sdk.Request{CompleteBy: time.Now().Add(time.Minute)}},
		done: func(_ sdk.Reply, err error) { ends <- err },
	}
	a.calls = 1
	p.work.Add(1)
	f.answered(sdk.Reply{}, errors.Join(plugin.ErrNotSent, plugin.ErrExited))
	var deferred *invoke.Deferred
	if err := <-ends; !errors.As(err, &deferred) || !strings.Contains(deferred.Why, "not installed") {
		t.Errorf("err = %v, want that no other process could be started", err)
	}
}
