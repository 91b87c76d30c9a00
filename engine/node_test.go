package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// S8, S11, S13, S16, S85: a saga runs forward to its end; each step starts
// after the one before it is completed durably, and its agent is told what to
// do and until when.
func TestSagaSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.faulty()
		n := w.start()
		run := w.submit(n, "order", nil)
		s := w.wait(n, run, status.RunSucceeded)
		if got := output(t, s, "id"); got != "id-book" {
			t.Errorf("output id = %q, want id-book", got)
		}
		want := []string{
			"run_created ", "attempt_started reserve", "attempt_finished reserve", "step_finished reserve",
			"attempt_started charge", "attempt_finished charge", "step_finished charge",
			"attempt_started book", "attempt_finished book", "step_finished book", "run_finished ",
		}
		if got := w.kinds(run); !slices.Equal(got, want) {
			t.Errorf("story:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, c := range w.shop.calls {
			if left := c.completeBy.Sub(c.at); left <= 0 || left > 30*time.Second {
				t.Errorf("%s was given %s", c.name, left)
			}
		}
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "charge": "done", "book": "done"})
		n.drain(t)
	})
}

// S9, S10, S14, S15: before any agent is called the run and every step show in
// the store; the step that is called shows as running with a complete-by.
func TestEveryStepShowsBeforeAnythingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		var seen []string
		w.inv.before = func(call invoke.Call) error {
			row, err := store.Complete(w.mem).Find(t.Context(), call.Request.Run)
			if err != nil {
				t.Errorf("the run does not show: %v", err)
				return nil
			}
			steps, err := w.mem.StepRows(t.Context(), row.Run)
			if err != nil {
				t.Error(err)
			}
			for _, s := range steps {
				seen = append(seen, fmt.Sprintf("%s:%s=%v", call.Request.Step, s.Name, s.State))
				if s.State == status.StepRunning && s.CompleteBy.IsZero() {
					t.Errorf("%s is running without a complete-by", s.Name)
				}
			}
			return nil
		}
		n := w.start()
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		want := []string{
			"reserve:reserve=running", "reserve:charge=pending", "reserve:book=pending",
			"charge:reserve=succeeded", "charge:charge=running", "charge:book=pending",
			"book:reserve=succeeded", "book:charge=succeeded", "book:book=running",
		}
		if !slices.Equal(seen, want) {
			t.Errorf("seen:\n%s\nwant:\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
		}
		n.drain(t)
	})
}

// S20, S31: a permanent failure turns the run: what was done is undone along
// the graph backwards.
func TestSagaIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.faulty()
		w.shop.on("book", func(context.Context, int) error {
			return &sdk.Failure{Code: "no_carrier", Message: "nobody drives there", Permanent: true}
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		s := w.wait(n, run, status.RunCompensated)
		if f := s.Failure(); f.Step != "book" || f.Code != "no_carrier" {
			t.Errorf("failure = %+v, want book no_carrier", f)
		}
		w.shop.wantEffects(t, map[string]string{"reserve": "undone", "charge": "undone", "book": "nothing"})
		var order []string
		for _, c := range w.shop.calls {
			order = append(order, strings.TrimSuffix(c.name, c.forward))
		}
		keys := w.shop.called("charge")[0].key
		if got := w.shop.calls[3].forward; got != keys {
			t.Errorf("the first undo is of %q, want that of charge %q (order %v)", got, keys, order)
		}
		n.drain(t)
	})
}

// S2, S25, S26, S64: a transient failure is repeated, with the same key, until
// it works.
func TestTransientFailureIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(_ context.Context, n int) error {
			if n < 3 {
				return &sdk.Failure{Code: "busy"}
			}
			return nil
		})
		n := w.start()
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		calls := w.shop.called("charge")
		if len(calls) != 3 || calls[0].key != calls[1].key || calls[1].key != calls[2].key {
			t.Errorf("calls = %+v, want three with one key", calls)
		}
		if other := w.shop.called("reserve")[0].key; other == calls[0].key {
			t.Error("two steps share a key")
		}
		n.drain(t)
	})
}

// S17, S18, S37, S39: a call that never answers is over at its complete-by,
// found by the Supervisor and repeated with the same key.
func TestSilenceIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.faulty()
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if n == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		n := w.start()
		start := time.Now()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		for _, f := range w.story.facts[run] { // the Supervisor wakes for what it knows
			if late := f.At.Sub(start.Add(10 * time.Second)); f.Status == "unknown" && (late < 0 || late > time.Millisecond) {
				t.Errorf("the attempt was over %s after its complete-by", late)
			}
		}
		calls := w.shop.called("charge")
		if len(calls) != 2 || calls[0].key != calls[1].key {
			t.Fatalf("calls = %+v, want two with one key", calls)
		}
		// timeout 10 s, then a backoff of at most 1 s with full jitter.
		if d := calls[1].at.Sub(start); d < 10*time.Second || d > 11*time.Second+100*time.Millisecond {
			t.Errorf("repeated after %s, want 10 s and a backoff", d)
		}
		w.shop.wantEffects(t, map[string]string{"charge": "done"})
		n.drain(t)
	})
}

// S17, S61, S62: the outcome of a silent call that is not idempotent stays
// unknown: nothing is guessed, the run parks and an operator is alerted.
func TestUnknownOutcomeParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderFlow, `note = step.charge.output.id
    }`, `note = step.charge.output.id
    }
    compensate {
      action = agent.shop.cancel
      input { id = self.output.id }
    }`, 1))
		w.faulty()
		w.shop.on("book", func(ctx context.Context, n int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunParked)
		if calls := w.shop.called("book"); len(calls) != 1 {
			t.Errorf("book was called %d times, want once", len(calls))
		}
		alerts, err := w.mem.Alerts(t.Context(), run, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != "parked" {
			t.Errorf("alerts = %+v, %v, want one of kind parked", alerts, err)
		}
		n.drain(t)
	})
}

// S28, S35: an answer that comes past complete-by never changes anything; it
// is counted.
func TestLateReplyIsCountedOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.inv.around = func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			if call.Request.Step != "charge" || call.Request.Attempt > 1 {
				return sdk.Reply{}, false
			}
			time.Sleep(call.Request.Remaining + time.Second) // an Invoker that does not keep to ctx
			return sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"late"}`)}, true
		}
		n := w.start()
		run := w.submit(n, "order", nil)
		s := w.wait(n, run, status.RunSucceeded)
		synctest.Wait()
		time.Sleep(time.Minute)
		if got := w.story.lateReplies(); got != 1 {
			t.Errorf("late replies = %d, want 1", got)
		}
		if got := story.Node(s, nil, 1).Output; strings.Contains(string(got.JSON()), "late") {
			t.Errorf("the late reply became the output: %s", got.JSON())
		}
		n.drain(t)
	})
}

// S35, S73: only a valid reply completes a step; anything else is a defined
// unknown outcome with code bad_reply, never a loop crash.
func TestInvalidReplies(t *testing.T) {
	replies := map[string]sdk.Reply{
		"no outcome":           {},
		"unknown outcome":      {Outcome: 99},
		"wrong type":           {Outcome: sdk.OutcomeResult, Output: []byte(`{"id":[1]}`)},
		"not json":             {Outcome: sdk.OutcomeResult, Output: []byte(`{`)},
		"no output":            {Outcome: sdk.OutcomeResult},
		"too large":            {Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"` + strings.Repeat("x", 2<<20) + `"}`)},
		"failure without code": {Outcome: sdk.OutcomeFailed},
		"lookup was not asked": {Outcome: sdk.OutcomeNotDone},
		"message too large":    {Outcome: sdk.OutcomeFailed, Code: "x", Message: strings.Repeat("x", 2<<20)},
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				first := true
				w.inv.around = func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
					if call.Request.Step != "reserve" || !first {
						return sdk.Reply{}, false
					}
					first = false
					return reply, true
				}
				n := w.start()
				run := w.submit(n, "order", nil)
				w.wait(n, run, status.RunSucceeded) // reserve is idempotent: repeated
				found := false
				for _, f := range w.story.facts[run] {
					found = found || f.Kind == story.FactAttemptFinished && f.Code == sdk.CodeBadReply
				}
				if !found {
					t.Errorf("no attempt ended with bad_reply:\n%s", w.transcript(run))
				}
				n.drain(t)
			})
		})
	}
}

// S5, S30: a lost agent is an unknown outcome, nothing else; the idempotent
// step is repeated without any message from the agent.
func TestLostAgentIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.inv.after = func(call invoke.Call, reply sdk.Reply) (sdk.Reply, bool) {
			if call.Request.Step == "charge" && call.Request.Attempt == 1 {
				return sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost}, true
			}
			return reply, true
		}
		n := w.start()
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		if calls := w.shop.called("charge"); len(calls) != 2 || calls[0].key != calls[1].key {
			t.Errorf("calls = %+v, want two with one key", calls)
		}
		w.shop.wantEffects(t, map[string]string{"charge": "done"})
		n.drain(t)
	})
}

// S40, S65: a call that was not sent spends no attempt; the step is held and
// says why.
func TestDeferredCallSpendsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.faulty()
		times := 0
		w.inv.before = func(call invoke.Call) error {
			if call.Request.Step == "book" && times < 3 {
				times++
				return &invoke.Deferred{Until: time.Now().Add(2 * time.Second), Why: "circuit open"}
			}
			return nil
		}
		n := w.start()
		start := time.Now()
		run := w.submit(n, "order", nil)
		s := w.wait(n, run, status.RunSucceeded)
		if d := time.Since(start); d < 6*time.Second || d > 7*time.Second {
			t.Errorf("took %s, want three pauses of 2 s", d)
		}
		if calls := w.shop.called("book"); len(calls) != 1 || calls[0].attempt != 1 {
			t.Errorf("calls = %+v, want one, numbered 1", calls)
		}
		if node := story.Node(s, nil, 2); node.Failures != 0 {
			t.Errorf("failures = %d, want 0", node.Failures)
		}
		held := false
		for _, f := range w.story.facts[run] {
			held = held || f.Kind == story.FactStepHeld && f.Step == "book" && f.Message == "circuit open"
		}
		if !held {
			t.Errorf("the story does not say why book is held:\n%s", w.transcript(run))
		}
		n.drain(t)
	})
}

// S45, S61: however many Supervisors tell a run that time has passed, and
// however often, each expiry counts once.
func TestExpiryCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.faulty()
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if n == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(9999 * time.Millisecond)
		done := make(chan error)
		for range 20 {
			go func() {
				for range 50 {
					if err := n.Deliver(t.Context(), run, machine.TimePassed{}); err != nil {
						done <- err
						return
					}
					time.Sleep(100 * time.Microsecond)
				}
				done <- nil
			}()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		s := w.wait(n, run, status.RunSucceeded)
		if node := story.Node(s, nil, 1); node.Failures != 1 {
			t.Errorf("failures = %d, want 1", node.Failures)
		}
		n.drain(t)
	})
}

// S73: what cannot be handled is a defined refusal, not a crash; the run goes
// on.
func TestEventsThatMeanNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		for _, e := range []machine.Event{
			nil, machine.AttemptOK{Attempt: machine.AttemptID{Node: 99, Call: 1}},
			machine.AttemptFailed{Attempt: machine.AttemptID{Node: -1, Call: -1}, Code: "x"},
			machine.SlotsFreed{}, machine.TimePassed{}, machine.Started{RunID: run},
		} {
			if err := n.Deliver(t.Context(), run, e); err != nil {
				t.Errorf("Deliver(%T) = %v, want nil", e, err)
			}
		}
		if err := n.Deliver(t.Context(), 12345, machine.TimePassed{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Deliver to a run that does not exist = %v, want ErrNotFound", err)
		}
		w.wait(n, run, status.RunSucceeded)
		if err := n.Deliver(t.Context(), run, machine.AttemptOK{Attempt: machine.AttemptID{Node: 0, Call: 1}}); err != nil {
			t.Errorf("Deliver to a run that has ended = %v, want nil", err)
		}
		n.drain(t)
	})
}

// S73: when deciding on one run panics, that run is quarantined where people see
// it, and the engine goes on with the others.
func TestPanicSetsOneRunAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.faulty()
		n := w.start()
		wf := w.def.Workflow("order")
		good := wf.Steps[2].Input
		var bad atomic.Bool
		bad.Store(true)
		wf.Steps[2].Input = func(s *dsl.Scope) (dsl.Value, error) {
			if bad.Load() && s.Run.ID == "bad" {
				panic("a mistake")
			}
			return good(s)
		}
		sub, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Name: "bad"})
		if err != nil {
			t.Fatal(err)
		}
		run := sub.Run
		other := w.submit(n, "order", nil)
		w.wait(n, other, status.RunSucceeded)
		_, err = n.Wait(t.Context(), run)
		var aside *journal.RunError
		if !errors.As(err, &aside) || aside.Run != int64(run) || !strings.Contains(err.Error(), "a mistake") {
			t.Errorf("Wait = %v, want a RunError that names the panic", err)
		}
		if err := n.Deliver(t.Context(), run, machine.TimePassed{}); !errors.As(err, &aside) {
			t.Errorf("Deliver = %v, want a RunError", err)
		}
		if n.Quarantined()[run] == nil {
			t.Error("Troubles does not list the run")
		}
		synctest.Wait()
		alerts, err := w.mem.Alerts(t.Context(), run, 10)
		kinds := map[string]int{}
		for _, a := range alerts {
			kinds[a.Kind]++
			if strings.Contains(a.Message, "goroutine") {
				t.Errorf("an alert holds a stack: %+v", a)
			}
		}
		// The answer that nobody could decide on is kept for whoever looks into it.
		late, lateErr := w.mem.LateReplies(t.Context(), run)
		if err != nil || lateErr != nil || kinds["quarantined"] != 1 || len(alerts) != 2 || len(late) != 1 {
			t.Errorf("alerts = %+v, late answers = %+v, %v, %v, want one of kind quarantined and the answer", alerts, late, err, lateErr)
		}
		n.drain(t)

		// Another engine, whose code does not panic, goes on with it.
		bad.Store(false)
		second := w.start()
		// Its patrol may have been quicker.
		if got, err := second.TakeOver(t.Context()); got > 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 1 or what the patrol left", got, err)
		}
		s, err := second.Wait(t.Context(), run)
		if err != nil || !s.Status().Final() && !s.Status().NeedsHuman() {
			t.Errorf("Wait = %v, %v", s, err)
		}
		second.drain(t)
	})
}

// S86, S88: a second process that only reads sees the same story, numbered
// from 1 without gaps, and can resume it anywhere.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			time.Sleep(time.Second)
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		collect := func(from int) ([]story.FactKind, int) {
			var kinds []story.FactKind
			start := 0
			s, err := journal.Reader{Store: w.mem, Defs: journal.NewDefinitions(w.mem, nil)}.Follow(t.Context(), run, from, func(first int, facts []story.Fact) {
				if start == 0 {
					start = first
				}
				if first != start+len(kinds) {
					t.Errorf("facts from %d after %d", first, start+len(kinds)-1)
				}
				for _, f := range facts {
					kinds = append(kinds, f.Kind)
				}
			}, journal.FollowOptions{})
			if err != nil || s.Status() != status.RunSucceeded {
				t.Errorf("Follow = %v, %v", s, err)
			}
			return kinds, start
		}
		all, start := collect(0)
		if start != 1 || all[0] != story.FactRunCreated || all[len(all)-1] != story.FactRunFinished {
			t.Errorf("story %v from %d", all, start)
		}
		rest, start := collect(5)
		if start != 5 || !slices.Equal(rest, all[4:]) {
			t.Errorf("resumed at %d: %v, want %v from 5", start, rest, all[4:])
		}
		own := w.kinds(run)
		if len(own) != len(all) || len(w.story.gaps) > 0 {
			t.Errorf("the observer was told %d facts (%v), the journal tells %d", len(own), w.story.gaps, len(all))
		}
		if s, err := n.Follow(t.Context(), run, 0, nil, journal.FollowOptions{}); err != nil || s.Status() != status.RunSucceeded {
			t.Errorf("Node.Follow = %v, %v", s, err)
		}
		n.drain(t)
	})
}
