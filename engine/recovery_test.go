package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// An auditStore remembers what landed and which batches of runs were read.
type auditStore struct {
	store.Full
	mu     sync.Mutex // protects the fields below
	landed []store.Transition
	loaded []int
}

type auditWriter struct {
	store.Writer
	s *auditStore
}

func (s *auditStore) OpenWriter(ctx context.Context, e store.EngineID, n int) (store.Writer, error) {
	w, err := s.Full.OpenWriter(ctx, e, n)
	if err != nil {
		return nil, err
	}
	return &auditWriter{w, s}, nil
}

func (s *auditStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	s.mu.Lock()
	s.loaded = append(s.loaded, len(runs))
	s.mu.Unlock()
	return s.Full.Load(ctx, runs...)
}

func (w *auditWriter) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	out, err := w.Writer.Commit(ctx, batch)
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for i, o := range out {
		if o.Landed {
			w.s.landed = append(w.s.landed, batch[i])
		}
	}
	return out, err
}

// turn returns the one transition that made a run what it is.
func (s *auditStore) turn(t *testing.T, run status.RunID, to status.RunState) store.Transition {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []store.Transition
	for _, tr := range s.landed {
		if tr.Run == run && tr.State == to {
			found = append(found, tr)
		}
	}
	if len(found) != 1 {
		t.Fatalf("run became %v %d times, want once", to, len(found))
	}
	return found[0]
}

// storyOf returns the names of a run's events, in order.
func (w *world) storyOf(run status.RunID) []string {
	w.t.Helper()
	story, err := journal.Load(w.t.Context(), w.mem, nil, journal.NewDefinitions(w.mem, nil), run)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, r := range story.Records {
		names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", r.Event()), "machine."))
	}
	return names
}

func countOf(list []string, word string) int {
	n := 0
	for _, s := range list {
		if s == word {
			n++
		}
	}
	return n
}

// S22, S37, S40, S61, S64, S79, S80: a step's failures are counted in the store,
// over the engines that die meanwhile. Below the ceiling whoever is left repeats
// it, what had failed and what had expired alike, and nobody sends anything
// again. With the ceiling reached, not passed, the run and its alert are set in
// one commit, and nothing ever tries again by itself.
func TestCeilingIsCountedAcrossEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "patient" {
  deadline = "1000h"
  step "charge" {
    action  = agent.shop.charge
    timeout = "10s"
    retry {
      max_attempts     = 3
      initial_interval = "20s"
      jitter           = "none"
      on_exhausted     = "park"
    }
    input { name = "charge" }
  }
}`)
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if n == 1 {
				return &sdk.Failure{Code: "busy"}
			}
			<-ctx.Done()
			return ctx.Err()
		})
		failures := func(run status.RunID) int {
			rows, err := w.mem.StepRows(t.Context(), run)
			if err != nil || len(rows) != 1 {
				t.Fatalf("step rows: %+v, %v", rows, err)
			}
			return rows[0].Failures
		}
		first := w.start()
		run := w.submit(first, "patient", nil)
		time.Sleep(time.Second)
		if got := failures(run); got != 1 {
			t.Errorf("the store counts %d failures after the first, want 1", got)
		}
		first.kill(t) // in the pause after a failure
		second := w.start()
		time.Sleep(22 * time.Second) // the second attempt hangs
		if got := len(w.shop.called("charge")); got != 2 {
			t.Fatalf("%d calls, want that of the failure and one more", got)
		}
		second.kill(t) // while an attempt runs
		audit := &auditStore{Full: store.Complete(w.mem)}
		w.store = audit
		third := w.start()
		w.wait(third, run, status.RunParked)
		turn := audit.turn(t, run, status.RunParked)
		if len(turn.Alerts) != 1 || turn.Alerts[0].Kind != "parked" {
			t.Errorf("alerts of the commit that parked the run: %+v, want one", turn.Alerts)
		}
		if got := failures(run); got != 3 {
			t.Errorf("the store counts %d failures, want 3", got)
		}
		// For two hours, with another engine that comes and goes: nothing.
		time.Sleep(time.Hour)
		fourth := w.start()
		time.Sleep(time.Hour)
		fourth.drain(t)
		third.drain(t)
		calls := w.shop.called("charge")
		if len(calls) != 3 || calls[0].key != calls[1].key || calls[1].key != calls[2].key {
			t.Errorf("calls = %+v, want three under one key", calls)
		}
		if alerts, err := w.mem.Alerts(t.Context(), run, 10); err != nil || len(alerts) != 1 {
			t.Errorf("alerts = %+v, %v, want the one", alerts, err)
		}
		if story := w.storyOf(run); countOf(story, "Started") != 1 || countOf(story, "TakenOver") != 2 {
			t.Errorf("story %v, want one submission and two takeovers", story)
		}
	})
}

// S37, S41, S44, S61: attempts that expire are repeated; past the ceiling each
// step has its own way: a long pause and a fresh round, or the undo of the whole
// run. Nobody but the Supervisor says anything here: every call is silent.
func TestPastTheCeilingEachStepChooses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "two" {
  deadline = "100h"
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
  step "patient" {
    action     = agent.shop.charge
    depends_on = [step.reserve]
    timeout    = "10s"
    retry {
      max_attempts = 2
      on_exhausted = "cool_down"
      cool_down    = "30m"
    }
    input { name = "patient" }
  }
  step "strict" {
    action     = agent.shop.charge
    depends_on = [step.patient]
    timeout    = "10s"
    retry {
      max_attempts = 2
      on_exhausted = "compensate"
    }
    input { name = "strict" }
  }
}`)
		silent := func(until int) script {
			return func(ctx context.Context, n int) error {
				if n <= until {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
		}
		w.shop.on("patient", silent(4))
		w.shop.on("strict", silent(100))
		n := w.start()
		run := w.submit(n, "two", nil)
		w.wait(n, run, status.RunCompensated)
		patient, strict := w.shop.called("patient"), w.shop.called("strict")
		if len(patient) < 5 || len(strict) < 2 {
			t.Fatalf("%d and %d calls, want two rounds and one more, and one round", len(patient), len(strict))
		}
		for i, want := range []bool{false, true, false, true} { // is there a long pause after the call?
			if d := patient[i+1].at.Sub(patient[i].completeBy); (d >= 30*time.Minute) != want {
				t.Errorf("%s after attempt %d of the patient step", d, i+1)
			}
		}
		if d := strict[1].at.Sub(strict[0].completeBy); d > time.Minute {
			t.Errorf("%s between the attempts of the strict step", d)
		}
		forward := 0
		for _, f := range w.story.facts[run] {
			if f.Kind == story.FactAttemptStarted && f.Step == "strict" && !f.Undo && f.Purpose == story.PurposeDo {
				forward++
			}
		}
		if forward != 2 {
			t.Errorf("the strict step was tried %d times, want 2\n%s", forward, w.transcript(run))
		}
		w.shop.wantEffects(t, map[string]string{"reserve": "undone", "patient": "undone"})
		n.drain(t)
	})
}

// S38, S42: a Supervisor without any agent to call, and with no engine alive,
// records that time has passed and that somebody else owns the run now, and that
// is all: nothing is called, nothing is started. What follows from it is done by
// the next engine.
func TestSupervisorOnlyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		first := w.start()
		run := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		first.kill(t)
		before := w.storyOf(run)
		time.Sleep(time.Minute) // the attempt is over, and so is the lease
		calls := len(w.shop.calls)
		for range 3 {
			if _, err := engine.SuperviseOnce(t.Context(), engine.Config{Store: w.mem, Options: engine.Options{Address: "cron", Lease: w.opts.Lease}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(w.opts.Lease)
		}
		for _, event := range w.storyOf(run)[len(before):] {
			if event != "TakenOver" && event != "TimePassed" {
				t.Errorf("a Supervisor recorded %s", event)
			}
		}
		if got := story.Node(w.check(run), nil, 1); got.Failures != 1 || got.Forward != status.StepBackoff && got.Forward != status.StepHeld {
			t.Errorf("charge is %v after %d failures, want it to wait for another attempt after one", got.Forward, got.Failures)
		}
		if live, err := store.Complete(w.mem).Live(t.Context()); err != nil || len(live) != 0 {
			t.Errorf("live = %+v, %v: a Supervisor starts nobody", live, err)
		}
		if len(w.shop.calls) != calls {
			t.Errorf("%d calls while no engine was there", len(w.shop.calls)-calls)
		}
		w.shop.on("charge", nil)
		second := w.start()
		w.wait(second, run, status.RunSucceeded)
		if got := w.shop.called("charge"); len(got) != 2 || got[0].key != got[1].key {
			t.Errorf("charge = %+v, want it repeated under its key", got)
		}
		second.drain(t)
	})
}

// S24: an undo has attempts, a ceiling and a deadline of its own. With either
// reached the run is compensation_failed and its alert is there, in one commit;
// nothing tries again by itself, whatever engines come and go, until an operator
// asks for it: then the undo goes on to its end.
func TestUndoThatFailsIsResumed(t *testing.T) {
	for name, tt := range map[string]struct {
		undo  script
		calls int // of the undo until it has failed; 0 = as many as fit into its deadline
		code  string
	}{
		"the ceiling":  {func(context.Context, int) error { return &sdk.Failure{Code: "unavailable"} }, 3, "unavailable"},
		"the deadline": {block, 0, "deadline_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, `
workflow "order" {
  deadline     = "1m"
  compensation { deadline = "2m" }
  step "charge" {
    action = agent.shop.charge
    input { name = "charge" }
    compensate {
      action  = agent.shop.release
      timeout = "25s"
      input { id = self.output.id }
      retry {
        max_attempts     = `+map[bool]string{true: `"unbounded"`, false: "3"}[tt.calls == 0]+`
        initial_interval = "1s"
        jitter           = "none"
      }
    }
  }
  step "book" {
    action       = agent.shop.book
    depends_on   = [step.charge]
    compensation = "none"
    input { name = "book" }
  }
}`)
				w.shop.on("book", func(context.Context, int) error { return &sdk.Failure{Code: "no_carrier", Permanent: true} })
				w.shop.on("undo", tt.undo)
				audit := &auditStore{Full: store.Complete(w.mem)}
				w.store = audit
				first := w.start()
				began := time.Now()
				run := w.submit(first, "order", nil)
				w.wait(first, run, status.RunCompensationFailed)
				undos := func() int { return len(w.shop.called("undo " + w.shop.called("charge")[0].key)) }
				if tt.calls > 0 && undos() != tt.calls {
					t.Errorf("the undo was tried %d times, want %d", undos(), tt.calls)
				}
				if d := time.Since(began); tt.calls == 0 && (d < 2*time.Minute || d > 2*time.Minute+time.Second) {
					t.Errorf("the undo was given up after %s, want its deadline of 2 min", d)
				}
				if turn := audit.turn(t, run, status.RunCompensationFailed); len(turn.Alerts) != 1 ||
					turn.Alerts[0].Kind != "compensation_failed" || turn.Alerts[0].Code != tt.code {
					t.Errorf("alerts beside the state: %+v", turn.Alerts)
				}
				failed := undos()
				first.kill(t)
				second := w.start()
				time.Sleep(time.Hour)
				if undos() != failed {
					t.Errorf("%d more undos by themselves", undos()-failed)
				}
				w.shop.on("undo", nil)
				if _, err := w.operator().Ask(t.Context(), run, machine.CompensateRequested{Step: "charge", Retry: true, By: "ann"}, "ann"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				w.wait(second, run, status.RunCompensated)
				w.shop.wantEffects(t, map[string]string{"charge": "undone"})
				second.drain(t)
			})
		})
	}
}

// S59, S62: an agent's permanent error parks the run and alerts the
// operator, in the commit that sets it, whether it struck the step or its undo.
func TestErrorAndAlertAreOneCommit(t *testing.T) {
	gone := func(code string) script {
		return func(context.Context, int) error { return &sdk.Failure{Code: code, Permanent: true} }
	}
	for name, tt := range map[string]struct {
		flow  string
		harm  func(*shop)
		want  status.RunState
		alert store.Alert
	}{
		"the step": {
			strings.Replace(orderFlow, `deadline = "1h"`, "deadline = \"1h\"\n  compensation { mode = \"manual\" }", 1),
			func(s *shop) { s.on("charge", gone("card_declined")) },
			status.RunParked, store.Alert{Kind: "parked", Step: "charge", Code: "card_declined"},
		},
		"its undo": {
			orderFlow,
			func(s *shop) { s.on("book", gone("no_carrier")); s.on("undo", gone("unavailable")) },
			status.RunCompensationFailed, store.Alert{Kind: "compensation_failed", Step: "charge", Code: "unavailable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.flow)
				tt.harm(w.shop)
				audit := &auditStore{Full: store.Complete(w.mem)}
				w.store = audit
				n := w.start()
				run := w.submit(n, "order", nil)
				w.wait(n, run, tt.want)
				turn := audit.turn(t, run, tt.want)
				if len(turn.Alerts) != 1 {
					t.Fatalf("alerts %+v, want one beside the state", turn.Alerts)
				}
				got := turn.Alerts[0]
				got.Message = ""
				if got != tt.alert {
					t.Errorf("alert %+v, want %+v", got, tt.alert)
				}
				if pending, err := w.mem.Undelivered(t.Context(), 10); err != nil || len(pending) != 1 || pending[0].Run != run {
					t.Errorf("to be pushed: %+v, %v, want the alert", pending, err)
				}
				n.drain(t)
			})
		})
	}
}

// S74, S75: runs of nobody are read in batches of the size that is set, and
// looks keep the pause that is set, however much there is to do and however
// often the store hints.
func TestBatchAndPauseAreSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		batch int
		pause time.Duration
	}{"one": {1, 100 * time.Millisecond}, "ten": {10, 100 * time.Millisecond}, "fifty": {50, time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, oneStep)
				var all []engine.Submission
				for range 100 {
					all = append(all, engine.Submission{Definition: w.def, Workflow: "one", Vars: w.vars("one", nil)})
				}
				subs, err := engine.EnqueueAll(t.Context(), engine.Config{Store: w.mem}, all)
				if err != nil {
					t.Fatal(err)
				}
				counts := &countStore{Full: store.Complete(w.mem)}
				audit := &auditStore{Full: store.Complete(quiet{store.Complete(counts)})}
				w.store, w.opts.ClaimBatch, w.opts.MinScan = audit, tt.batch, tt.pause
				n := w.start()
				began := time.Now()
				for _, s := range subs {
					w.wait(n, s.Run, status.RunSucceeded)
				}
				audit.mu.Lock()
				loaded := slices.Clone(audit.loaded)
				audit.mu.Unlock()
				if len(loaded) == 0 || slices.Max(loaded) != tt.batch {
					t.Errorf("batches of %v, want at most %d and one of that size", loaded, tt.batch)
				}
				// Without hints, and with one after each batch at most 20 ms apart.
				if ticks, most := counts.count("Tick"), int(time.Since(began)/hintPause)+2; ticks > most {
					t.Errorf("%d looks in %s", ticks, time.Since(began))
				}
				counts.reset()
				began = time.Now()
				time.Sleep(10 * time.Second)
				if ticks := counts.count("Tick"); ticks > int(time.Since(began)/tt.pause)+1 {
					t.Errorf("%d looks in %s with a pause of %s", ticks, time.Since(began), tt.pause)
				}
				n.drain(t)
			})
		})
	}
}

// hintPause is the shortest pause between two looks where the store hints.
const hintPause = 20 * time.Millisecond

// A quiet store never hints.
type quiet struct{ store.Full }

// S74: a store that hints all the time is not asked all the time.
func TestHintsAreNoTightLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		counts := &countStore{Full: store.Complete(w.mem)}
		w.store = noisy{store.Complete(counts)}
		n := w.start()
		counts.reset()
		time.Sleep(10 * time.Second)
		if ticks := counts.count("Tick"); ticks > int(10*time.Second/hintPause)+1 {
			t.Errorf("%d looks in 10 s", ticks)
		}
		n.drain(t)
	})
}

// A noisy store hints a thousand times a second.
type noisy struct{ store.Full }

func (noisy) Wakes(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{})
	go func() {
		defer close(hints)
		for {
			if pause(ctx, time.Millisecond) != nil {
				return
			}
			select {
			case hints <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return hints
}

// S87, S88: which runs are pending, what each of their steps is doing and when
// they have to be looked at follows from their streams alone: a replay of all
// streams is the store's own list, at any moment. A step that was set back after a
// transient fault is in it without having been asked for again.
func TestPendingIsRebuiltFromStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		fates := []script{
			nil,
			block,
			func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} },
			func(_ context.Context, n int) error {
				if n%3 != 0 {
					return &sdk.Failure{Code: "busy"}
				}
				return nil
			},
			func(ctx context.Context, _ int) error { return pause(ctx, 4*time.Second) },
		}
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if f := fates[n%len(fates)]; f != nil {
				return f(ctx, n)
			}
			return nil
		})
		n := w.start()
		var runs []status.RunID
		for range 15 {
			runs = append(runs, w.submit(n, "order", nil))
		}
		w.queued()
		backoffs := 0
		for range 40 {
			backoffs += w.replayAll(t)
			time.Sleep(300 * time.Millisecond)
		}
		if backoffs == 0 {
			t.Error("no step was seen set back")
		}
		for _, run := range runs {
			if _, err := n.Wait(t.Context(), run); err != nil {
				t.Error(err)
			}
			if got := countOf(w.storyOf(run), "Started"); got != 1 {
				t.Errorf("run %d was submitted %d times", run, got)
			}
		}
		w.replayAll(t)
		n.drain(t)
	})
}

// replayAll replays every stream, compares the result with what the store shows
// of runs and steps, and returns how many steps wait for another attempt.
func (w *world) replayAll(t *testing.T) int {
	t.Helper()
	synctest.Wait()
	rows, err := w.mem.Runs(t.Context(), store.RunFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	waiting := 0
	for _, row := range rows {
		told, err := journal.Load(t.Context(), w.mem, nil, journal.NewDefinitions(w.mem, nil), row.Run)
		if err != nil {
			t.Fatal(err)
		}
		if told.State.Status() != row.State {
			t.Errorf("run %d: its stream says %v, the list %v", row.Run, told.State.Status(), row.State)
		}
		if due, ok := told.State.NextDue(); ok && !row.State.Final() && row.NextCheck.After(due) {
			t.Errorf("run %d: its stream says it is due at %v, the list %v", row.Run, due, row.NextCheck)
		}
		steps, err := w.mem.StepRows(t.Context(), row.Run)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			node := story.Node(told.State, told.Flow, int(s.Node))
			if node.State != s.State || node.Failures != s.Failures || !node.CompleteBy.Equal(s.CompleteBy) {
				t.Errorf("run %d: of %s its stream says %v, %d failures, until %v; the list %v, %d, %v",
					row.Run, s.Name, node.State, node.Failures, node.CompleteBy, s.State, s.Failures, s.CompleteBy)
			}
			if s.State == status.StepBackoff {
				waiting++
			}
		}
	}
	return waiting
}
