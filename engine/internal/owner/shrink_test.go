package owner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A shard's queue, the agenda and a line of runs give back what a burst took.
func TestQueuesShrink(t *testing.T) {
	const small, burst = 1024, 20 * 1024 // lists keep room for so many items
	synctest.Test(t, func(t *testing.T) {
		sh := newShard(&common{n: &Shared{}})
		last, ended := make(chan struct{}), make(chan struct{})
		for range burst {
			sh.post(func(context.Context) {})
		}
		go func() { sh.loop(t.Context(), last); close(ended) }()
		synctest.Wait()
		for range 4 { // the two lists of a shard take turns
			sh.post(func(context.Context) {})
			synctest.Wait()
		}
		sh.mu.Lock()
		room := cap(sh.queue)
		sh.mu.Unlock()
		if room > small {
			t.Errorf("an idle shard keeps room for %d tasks", room)
		}
		close(last)
		<-ended
	})
	a, now := newTimers(), time.Now()
	for i := range burst {
		a.set(status.RunID(i+1), now, true)
	}
	if runs, _ := a.Take(now); len(runs) != burst || cap(a.items) > small {
		t.Errorf("%d runs were due, and an empty agenda keeps room for %d", len(runs), cap(a.items))
	}
	q := newSlotQueue(plenty{}, nil)
	q.notify = func(status.RunID, string) {}
	for i := range 3 {
		q.wait(status.RunID(i+1), invoke.AgentSpec{Key: "a"}, urgency{})
	}
	for range 3 {
		q.decided("a")
	}
	if q.Waiting() != 0 || len(q.lines) != 0 {
		t.Errorf("%d wait, and %d lines are kept in which nobody stands", q.Waiting(), len(q.lines))
	}
}

// plenty has room for every call.
type plenty struct{}

func (plenty) Slot(invoke.AgentSpec) machine.Slot { return machine.Slot{Free: 1} }
func (plenty) Reserve(invoke.AgentSpec, int) bool { return true }
func (plenty) Release(invoke.AgentSpec, int)      {}
func (plenty) OnFree(func(string))                {}
