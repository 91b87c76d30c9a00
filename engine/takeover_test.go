package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// S59: a run that waits for a person stays as it is when engines come and go;
// whoever wants to move it on takes it. One beside which a step still runs is
// taken over, because time moves it.
func TestTakeOverLeavesRunsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "two" {
  deadline     = "10m"
  compensation { mode = "manual" }
  step "bad" {
    action = agent.shop.charge
    input { name = "bad" }
  }
}
workflow "beside" {
  deadline     = "10m"
  compensation { mode = "manual" }
  step "bad" {
    action = agent.shop.charge
    input { name = "bad" }
  }
  step "slow" {
    action  = agent.shop.reserve
    timeout = "5m"
    input { name = "slow" }
  }
}`)
		block := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		w.shop.on("slow", block)
		w.shop.on("bad", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		first := w.start()
		rest := w.submit(first, "two", nil)
		busy := w.submit(first, "beside", nil)
		w.wait(first, rest, status.RunParked)
		w.wait(first, busy, status.RunParked)
		first.kill(t)
		head, rows, err := store.LoadRun(t.Context(), w.mem, rest)
		if err != nil || head.AtRest() { // its deadline is ahead
			t.Fatalf("head = %+v, %v", head, err)
		}
		for range 3 {
			time.Sleep(w.opts.Lease)
			n := w.start()
			if _, err := n.TakeOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // it has let go of the runs: its death counts against none of them
			n.kill(t)
		}
		if _, now, err := store.LoadRun(t.Context(), w.mem, rest); err != nil || len(now) != len(rows) {
			t.Errorf("the run at rest has %d rows, %v, want the %d it had", len(now), err, len(rows))
		}
		if head, _, err := store.LoadRun(t.Context(), w.mem, busy); err != nil || head.Owner < 2 {
			t.Errorf("owner of the run with a running step = %d, %v, want a later engine", head.Owner, err)
		}
		// Once the deadline has passed somebody says so, once.
		time.Sleep(10 * time.Minute)
		for range 2 {
			n := w.start()
			if _, err := n.TakeOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(w.opts.Lease)
			n.kill(t)
			time.Sleep(w.opts.Lease)
		}
		head, rows, err = store.LoadRun(t.Context(), w.mem, rest)
		if alerts, _ := w.mem.Alerts(t.Context(), rest, 10); err != nil || !head.AtRest() || len(alerts) != 2 || alerts[0].Kind != "overdue" {
			t.Errorf("head = %+v, alerts %+v, %v, want it at rest and overdue", head, alerts, err)
		}
		last := w.start()
		if n, err := last.TakeOver(t.Context()); err != nil {
			t.Errorf("TakeOver = %d, %v", n, err)
		}
		if _, now, err := store.LoadRun(t.Context(), w.mem, rest); err != nil || len(now) != len(rows) {
			t.Errorf("the run at rest has %d rows, %v, want the %d it had", len(now), err, len(rows))
		}
		if err := last.Adopt(t.Context(), rest); err != nil {
			t.Errorf("Adopt = %v", err)
		}
		if head, _, err := store.LoadRun(t.Context(), w.mem, rest); err != nil || head.Owner != last.Engine() {
			t.Errorf("owner = %d, %v, want %d", head.Owner, err, last.Engine())
		}
		last.drain(t)
	})
}

// S19: a takeover asks for the messages of those runs only for which there are
// some, and whether there are is told with the runs themselves.
func TestTakeOverReadsTheInboxWhereThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderFlow, `deadline = "1h"`, "deadline = \"1h\"\n  compensation { mode = \"manual\" }", 1))
		w.shop.on("charge", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		first := w.start()
		var runs []status.RunID
		for range 20 {
			run := w.submit(first, "order", nil)
			w.wait(first, run, status.RunParked)
			runs = append(runs, run)
		}
		first.kill(t)
		time.Sleep(2 * w.opts.Lease)
		id := w.post(runs[7], store.MessageVerb, machine.RetryRequested{Step: "charge", By: "ann"}, time.Time{})
		store := &countStore{Full: store.Complete(w.mem)}
		w.store = store
		w.opts.OnlyOwnRuns = true
		second := w.start()
		store.reset()
		if n, err := second.TakeOver(t.Context()); err != nil || n > 1 { // the scanner may have been quicker
			t.Errorf("TakeOver = %d, %v, want no more than the run that is spoken to", n, err)
		}
		if got := store.count("Messages"); got > 2 { // as it is taken over, and once more behind that
			t.Errorf("inboxes were read %d times for one message", got)
		}
		if err := w.operator().Answer(t.Context(), runs[7], id); err != nil {
			t.Errorf("Answer = %v", err)
		}
		second.drain(t)
	})
}
