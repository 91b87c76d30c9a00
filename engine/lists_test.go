package engine

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// What a burst took is given back once it is over, and what is dropped is not kept.
func TestListsShrink(t *testing.T) {
	burst := make([]*int, 10*smallList)
	for i := range burst {
		burst[i] = new(int)
	}
	rest := dropFirst(burst, len(burst)-10)
	if len(rest) != 10 || roomy(cap(rest), len(rest)) {
		t.Errorf("10 of a burst are left with room for %d", cap(rest))
	}
	if rest = dropFirst(rest, 3); len(rest) != 7 || rest[:10][7] != nil || rest[:10][9] != nil {
		t.Errorf("%d are left, and what was dropped is kept: %v", len(rest), rest[:cap(rest)])
	}
	if got := dropFirst(make([]*int, 10*smallList), 10*smallList); got != nil {
		t.Errorf("nothing is left with room for %d", cap(got))
	}
	if got := blank(burst[:5]); got != nil {
		t.Errorf("5 went through a list with room for %d, which is kept", cap(got))
	}
	if got := blank(burst); len(got) != 0 || cap(got) != cap(burst) || burst[0] != nil {
		t.Error("a list that is used whole is not kept for the next time, or its items are")
	}
}

// A shard's queue, the agenda and a line of runs give back what a burst took.
func TestQueuesShrink(t *testing.T) {
	const burst = 20 * smallList
	synctest.Test(t, func(t *testing.T) {
		sh := newShard(&scheduler{})
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
		if room > smallList {
			t.Errorf("an idle shard keeps room for %d tasks", room)
		}
		close(last)
		<-ended
	})
	a, now := newTimers(), time.Now()
	for i := range burst {
		a.set(machine.RunID(i+1), now, true)
	}
	if runs, _ := a.take(now); len(runs) != burst || cap(a.items) > smallList {
		t.Errorf("%d runs were due, and an empty agenda keeps room for %d", len(runs), cap(a.items))
	}
	q := newSlotQueue(plenty{}, nil)
	q.tell = func(machine.RunID, string) {}
	for i := range 3 {
		q.wait(machine.RunID(i+1), AgentSpec{Key: "a"})
	}
	for range 3 {
		q.told("a")
	}
	if q.waiting() != 0 || len(q.lines) != 0 {
		t.Errorf("%d wait, and %d lines are kept in which nobody stands", q.waiting(), len(q.lines))
	}
}

// plenty has room for every call.
type plenty struct{}

func (plenty) Slot(AgentSpec) machine.Slot { return machine.Slot{Free: 1} }
func (plenty) Reserve(AgentSpec, int) bool { return true }
func (plenty) Release(AgentSpec, int)      {}
func (plenty) OnFree(func(string))         {}

// A reentrant is a log handler that asks for more while it is told: it can only
// return if no lock is held meanwhile.
type reentrant struct {
	slog.Handler
	ask func()
}

func (h reentrant) Enabled(context.Context, slog.Level) bool { return true }
func (h reentrant) Handle(context.Context, slog.Record) error {
	h.ask()
	return nil
}

// Nothing is logged under a lock that those need who do the work.
func TestLoggingHoldsNoLock(t *testing.T) {
	told := make(chan string, 2)
	var k *LogKeeper
	k = NewLogKeeper(nil, slog.New(reentrant{slog.DiscardHandler, func() { k.Keep(store.LogLine{}); told <- "keeper" }}))
	k.dropped = 1
	go func() { _ = k.flush(t.Context(), logBatch) }()
	n := &Node{}
	ev := &evidence{n: n, dropped: 1, idle: make(chan struct{})}
	n.cfg.Logger = slog.New(reentrant{slog.DiscardHandler, func() { ev.wait(t.Context(), 0); told <- "evidence" }})
	go ev.work(ev.idle)
	for range 2 {
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatal("a logger that asks for more waits for ever")
		}
	}
}
