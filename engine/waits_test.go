package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// waitFlow has a run that waits for two signals in a row, and one that waits for a time. Without
// a deadline nothing of the first becomes due.
const waitFlow = `
workflow "two" {
  step "one" {
    wait { signal = "go" }
  }
  step "two" {
    depends_on = [step.one]
    wait {
      signal  = "go"
      payload = object({ n = number })
    }
  }
  output "n" { value = step.two.output.n }
}
workflow "pause" {
  step "pause" {
    timer { duration = "10m" }
  }
}`

// payload returns what a signal carries, from JSON.
func payload(text string) dsl.Value { return dsl.NewValue([]byte(text), nil, nil) }

// signal sends a signal to a run as another process would, and waits for the answer.
func (w *world) signal(run status.RunID, s machine.SignalReceived) {
	w.t.Helper()
	s.By = "ann"
	op := w.operator()
	id, err := op.Ask(w.t.Context(), run, s, "ann")
	if err != nil {
		w.t.Fatal(err)
	}
	within(w.t, time.Minute, "answer", func(ctx context.Context) error { return op.Answer(ctx, run, id) })
}

// Runs that wait for a signal or a time take no memory. A signal or the end of the timer finds
// them, and the early signals of a run are read again with it.
func TestWaitingRunsTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, waitFlow+orderFlow)
		w.opts.MaxRunMemory = 4000 // a few runs
		n := w.start()
		var two, pause []status.RunID
		for range 40 {
			two = append(two, w.submit(n, "two", nil))
			pause = append(pause, w.submit(n, "pause", nil))
		}
		began := time.Now()
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := n.Status(); s.Runs != 0 || s.Memory != 0 {
			t.Errorf("%d runs with %d bytes are in memory, want none: all of them wait", s.Runs, s.Memory)
		}
		for _, run := range pause {
			w.wait(n, run, status.RunSucceeded)
		}
		if took := time.Since(began); took < 10*time.Minute || took > 10*time.Minute+w.opts.Lease {
			t.Errorf("the timers ended after %s, want 10m", took)
		}
		for _, run := range two {
			// Both waits begin and end while the run is read from the store again and again.
			w.signal(run, machine.SignalReceived{Name: "go", Payload: payload(`{"n":1}`)})
			w.signal(run, machine.SignalReceived{Name: "go", Payload: payload(`{"n":2}`)})
			if s := w.wait(n, run, status.RunSucceeded); string(story.Node(s, nil, 1).Output.JSON()) != `{"n":2}` {
				t.Errorf("the second wait took %s, want the second signal", story.Node(s, nil, 1).Output.JSON())
			}
		}
		n.drain(t)
	})
}

// An early signal and the ids of signals outlive the engine that accepted them.
func TestEarlySignalsOutliveTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "slow" {
  step "work" {
    action = agent.shop.charge
    input { name = "work" }
  }
  step "one" {
    depends_on = [step.work]
    wait { signal = "go" }
  }
  step "two" {
    depends_on = [step.one]
    wait { signal = "go" }
  }
}`+orderFlow)
		proceed := make(chan struct{})
		w.shop.on("work", func(ctx context.Context, try int) error {
			if try == 1 {
				<-ctx.Done() // the engine dies during this call
				return ctx.Err()
			}
			<-proceed
			return nil
		})
		n := w.start()
		run := w.submit(n, "slow", nil)
		time.Sleep(time.Second)
		w.signal(run, machine.SignalReceived{Name: "go", ID: "m-1", Payload: payload(`1`)})
		n.kill(t)

		n = w.start()
		time.Sleep(10 * w.opts.Lease)
		w.signal(run, machine.SignalReceived{Name: "go", ID: "m-1", Payload: payload(`1`)}) // counts once
		close(proceed)
		time.Sleep(time.Minute)
		s := w.check(run)
		if s.Status() != status.RunWaiting || string(story.Node(s, nil, 1).Output.JSON()) != `1` {
			t.Errorf("the run is %s, and the first wait took %s; want waiting, and the signal that came before the engine died", s.Status(), story.Node(s, nil, 1).Output.JSON())
		}
		w.signal(run, machine.SignalReceived{Name: "go", ID: "m-2", Payload: payload(`2`)})
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}
