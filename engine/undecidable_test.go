package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// S73, S76: an engine beside which a message waits that it cannot read is as
// idle as one beside which none does, whether it owns the run or not.
func TestUnreadableMessageKeepsNobodyAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		st := &countStore{Full: store.Complete(w.mem)}
		w.store, w.opts = st, engine.Options{Address: "test"}
		n := w.start()
		run := w.submit(n, "order", nil)
		if err := n.Deliver(t.Context(), run, machine.PauseRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute) // its call has ended, and it is paused
		if _, err := w.mem.Post(t.Context(), store.Message{Run: run, Kind: store.MessageReply, Data: []byte{0, 250, 1}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		st.mustRest(t)
		// What can be read is answered all the same.
		id := w.post(run, store.MessageVerb, machine.ResumeRequested{By: "ann"}, time.Time{})
		within(t, 6*time.Minute, "answer", func(ctx context.Context) error { return w.operator().Answer(ctx, run, id) })
		n.kill(t)
	})
}

// S73, S76: a run that has ended, whose journal a newer version wrote and to
// which a message waits, is not read at every tick.
func TestUnreadableRunWithAMessageIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		st := &newerStore{countStore: &countStore{Full: store.Complete(w.mem)}}
		w.store, w.opts = st, engine.Options{Address: "test"}
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
		st.newer = run
		w.post(run, store.MessageReply, machine.AttemptUnknown{Attempt: machine.AttemptID{Node: 1}, Code: "x"}, time.Time{})
		n = w.start()
		time.Sleep(10 * time.Minute)
		st.mustRest(t)
		if n.Quarantined()[run] == nil {
			t.Error("it does not show")
		}
		n.drain(t)
	})
}

// mustRest fails the test if engines send more statements in ten minutes than those
// that are idle.
func (s *countStore) mustRest(t *testing.T) {
	t.Helper()
	s.reset()
	time.Sleep(10 * time.Minute)
	if got := s.count(""); got > 10*10 {
		t.Errorf("%d statements in ten minutes: %v", got, s.calls)
	}
}

// A newerStore holds a run that a newer version wrote.
type newerStore struct {
	*countStore
	newer status.RunID
}

func (s *newerStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	all, err := s.countStore.Load(ctx, runs...)
	for _, l := range all {
		if l.Head.Run == s.newer {
			l.Rows[0].Data = []byte{250, 1, 2}
		}
	}
	return all, err
}

// S59, S74: a verb to a run at rest whose owner is gone and whose deadline is far
// ahead is answered although no hint ever comes.
func TestVerbToARunAtRestWithoutHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "two" {
  deadline     = "48h"
  compensation { mode = "manual" }
  step "bad" {
    action = agent.shop.charge
    input { name = "bad" }
  }
}`)
		w.shop.on("bad", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		w.store, w.opts = &countStore{Full: store.Complete(w.mem)}, engine.Options{Address: "test"} // which does not hint
		first := w.start()
		run := w.submit(first, "two", nil)
		w.wait(first, run, status.RunParked)
		first.drain(t)
		n := w.start()
		time.Sleep(10 * time.Minute) // it was looked at by now
		op := w.operator()
		id, err := op.Ask(t.Context(), run, machine.CancelRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		within(t, 8*time.Minute, "answer", func(ctx context.Context) error { return op.Answer(ctx, run, id) })
		n.drain(t)
	})
}

// S60, S85: a verb to a run that waits for a person, and whose engine is gone,
// is answered soon however many runs of nobody wait for agents.
func TestVerbBehindALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "two" {
  deadline     = "48h"
  compensation { mode = "manual" }
  step "bad" {
    action = agent.shop.charge
    input { name = "bad" }
  }
}`)
		w.shop.on("bad", func(_ context.Context, n int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		first := w.start()
		run := w.submit(first, "two", nil)
		w.wait(first, run, status.RunParked)
		first.drain(t)

		var all []engine.Submission
		for range 1300 { // more than a tick tells of
			all = append(all, engine.Submission{Definition: w.def, Workflow: "two", Vars: w.vars("two", nil)})
		}
		if _, err := engine.EnqueueAll(t.Context(), engine.Config{Store: w.mem}, all); err != nil {
			t.Fatal(err)
		}
		w.opts.ClaimBatch = 10
		w.cfg = func(c *engine.Config) { c.Capacity = &seats{} } // no call can start
		n := w.start()
		time.Sleep(10 * time.Minute) // it was looked at by now
		op := w.operator()
		id, err := op.Ask(t.Context(), run, machine.CancelRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, "answer", func(ctx context.Context) error { return op.Answer(ctx, run, id) })
		n.drain(t)
	})
}
