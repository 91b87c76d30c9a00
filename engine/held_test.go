package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// An engine whose runs take as much memory as they may takes up no more: new ones
// stay queued, and are taken up when others have ended.
func TestMemoryIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.opts.MaxRunMemory = 2000 // one run, or two
		w.opts.ClaimBatch = 1
		proceed := make(chan struct{})
		w.inv.around = func(ctx context.Context, call invoke.Call) (sdk.Reply, bool) {
			select {
			case <-proceed:
			case <-ctx.Done():
			}
			return sdk.Reply{}, false
		}
		var runs []status.RunID
		for range 20 {
			runs = append(runs, w.queued())
		}
		n := w.start()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := n.Status(); s.Runs == 0 || s.Runs > 4 || s.Memory < 2000 {
			t.Errorf("%d runs with %d bytes in memory, want few and as much as they may", s.Runs, s.Memory)
		}
		queued := 0
		for _, run := range runs {
			head, _, err := store.LoadRun(t.Context(), w.mem, run)
			if err != nil {
				t.Fatal(err)
			}
			if head.Owner == 0 && head.State == status.RunQueued {
				queued++
			}
		}
		if queued < 16 {
			t.Errorf("%d runs are queued, want 16 at least", queued)
		}
		close(proceed)
		for _, run := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		synctest.Wait()
		if s := n.Status(); s.Memory != 0 {
			t.Errorf("%d bytes are held by no run", s.Memory)
		}
		n.drain(t)
	})
}

// Checkpoints in a loop reach the journal at their pace, the last one surely.
func TestCheckpointsHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 64 << 10
		w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			for i := range 2000 { // for 20 s
				call.OnProgress(invoke.Progress{Number: i + 1, Blob: make([]byte, size)})
				time.Sleep(10 * time.Millisecond)
			}
			return sdk.Reply{}, false
		})
		n := w.start()
		run := w.submit(n, "import", nil)
		w.wait(n, run, status.RunSucceeded)
		most := int(20*time.Second/(size*time.Second/call.CheckpointRate)) + 2
		list := w.progressed(run)
		if len(list) > most || len(list) < most/2 {
			t.Errorf("%d checkpoints in 20 s, want about %d at most", len(list), most)
		}
		var last int
		for _, rec := range w.records(run) {
			if p, ok := rec.Event().(machine.AttemptProgress); ok {
				last = p.Number
			}
		}
		if last != 2000 {
			t.Errorf("the last checkpoint is %d, want 2000", last)
		}
		n.drain(t)
	})
}

// Runs that wait for a person take no memory: an engine with many of them takes up new runs,
// and a verb or a passed deadline finds them again.
func TestRunsAtRestTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "risky" {
  compensation { mode = "manual" }
  variable "name" { type = string }
  step "bad" {
    action = agent.shop.charge
    input { name = var.name }
  }
}`+orderFlow)
		w.opts.MaxRunMemory = 4000 // a few runs
		w.shop.on("bad", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		n := w.start()
		var parked []status.RunID
		for range 40 {
			run := w.submit(n, "risky", map[string]string{"name": "bad"})
			w.wait(n, run, status.RunParked)
			parked = append(parked, run)
		}
		synctest.Wait()
		if s := n.Status(); s.Runs != 0 || s.Memory != 0 {
			t.Errorf("%d runs with %d bytes are in memory, want none: all wait for a person", s.Runs, s.Memory)
		}
		w.wait(n, w.queued(), status.RunSucceeded)

		op := w.operator()
		id, err := op.Ask(t.Context(), parked[7], machine.CancelRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, "answer", func(ctx context.Context) error { return op.Answer(ctx, parked[7], id) })
		synctest.Wait()
		if s := n.Status(); s.Runs != 0 {
			t.Errorf("%d runs are in memory after the verb, want none", s.Runs)
		}
		n.drain(t)
	})
}

// Runs whose next attempt is far ahead take no memory, and are read again when its time has
// come.
func TestRunsInBackoffTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "patient" {
  deadline = "2h"
  variable "name" { type = string }
  step "slow" {
    action = agent.shop.charge
    retry {
      max_attempts     = 3
      initial_interval = "10m"
      jitter           = "none"
    }
    input { name = var.name }
  }
}`+orderFlow)
		w.opts.MaxRunMemory = 4000 // a few runs
		w.shop.on("slow", func(_ context.Context, n int) error {
			if n <= 40 { // the first attempt of each run
				return &sdk.Failure{Code: "busy"}
			}
			return nil
		})
		n := w.start()
		var runs []status.RunID
		for range 40 {
			runs = append(runs, w.submit(n, "patient", map[string]string{"name": "slow"}))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s, calls := n.Status(), len(w.shop.called("slow")); s.Runs != 0 || s.Memory != 0 || calls != 40 {
			t.Errorf("%d runs with %d bytes are in memory after %d calls, want none after 40: all wait for their second attempt", s.Runs, s.Memory, calls)
		}
		w.wait(n, w.queued(), status.RunSucceeded)
		for _, run := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		n.drain(t)
	})
}
