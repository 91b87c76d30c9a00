package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/story"
)

// lateFlow has groups that start an hour after their run.
const lateFlow = `
workflow "late" {
  step "cool" {
    timer { duration = "1h" }
  }
  group "voter" {
    for_each     = toset(["a", "b"])
    depends_on   = [step.cool]
    max_parallel = 1
    step "vote" {
      wait {
        signal  = "vote"
        payload = string
      }
    }
    group "check" {
      depends_on = [step.vote]
      step "seen" {
        wait {
          signal  = "seen"
          payload = string
        }
      }
      output "text" { value = "${step.vote.output}-${step.seen.output}" }
    }
    output "text" { value = group.check.output.text }
  }
  output "votes" { value = join(" ", [for key, v in group.voter : v.output.text]) }
}`

// Signals for groups that have not started are kept, and each key of the group, and the group in it, gets
// its own when it starts. The run that kept a signal knows its id.
func TestEarlySignalsReachGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, lateFlow)
		n := w.start()
		run := w.submit(n, "late", nil)
		time.Sleep(time.Minute)
		op := w.operator()
		send := func(name, text, id string) {
			t.Helper()
			ev := machine.SignalReceived{Name: name, ID: id, Payload: payload(text)}
			to, err := op.Receiver(t.Context(), run, ev)
			if err != nil || to.Run != run || to.Known || !to.Again {
				t.Fatalf("the receiver of signal %s is %+v, err = %v, want the run itself", name, to, err)
			}
			w.signal(run, ev)
		}
		send("vote", `"1"`, "id-1")
		send("seen", `"x"`, "")
		send("vote", `"2"`, "id-2")
		var refused *operator.RefusedError
		if to, err := op.Receiver(t.Context(), run, machine.SignalReceived{Name: "vote", Payload: payload(`{}`)}); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "the payload does not fit") {
			t.Errorf("the receiver of a payload of another type is %+v, err = %v", to, err)
		}
		time.Sleep(time.Hour) // both keys have started, one after the other
		ev := machine.SignalReceived{Name: "vote", ID: "id-2", Payload: payload(`"2"`)}
		if to, err := op.Receiver(t.Context(), run, ev); err != nil || to.Run != run || !to.Known {
			t.Errorf("the receiver of a known id is %+v, err = %v", to, err)
		}
		second := w.wantChildren(run, status.RunSucceeded, status.RunRunning)[1]
		if err := op.Try(t.Context(), run, machine.SignalReceived{Name: "seen", Payload: payload(`"y"`)}); !errors.As(err, &refused) {
			t.Errorf("the run keeps a signal although all its groups have started: %v", err)
		}
		ev = machine.SignalReceived{Name: "seen", Payload: payload(`"y"`)}
		to, err := op.Receiver(t.Context(), run, ev)
		if err != nil || !strings.Contains(to.Name, ".voter-b.") || !strings.Contains(to.Name, ".check.") {
			t.Fatalf("the receiver of the last signal is %+v, err = %v", to, err)
		}
		w.signal(to.Run, ev)
		if votes := output(t, w.wait(n, run, status.RunSucceeded), "votes"); votes != "1-x 2-y" {
			t.Errorf("votes = %s, want 1-x 2-y", votes)
		}
		heard := 0
		for _, f := range story.Facts(w.def.Workflow("late.voter"), machine.NewState(), w.records(second.Run)[0]) {
			if f.Kind == story.FactSignalReceived && f.Signal == "vote" && f.By == "ann" {
				heard++
			}
		}
		if heard != 1 {
			t.Errorf("the story of the second group tells of %d signals, want one", heard)
		}
		n.drain(t)
	})
}

// A group that has started, and keeps the signal for a group in it, comes before a group that has not
// started: the latter may wait for the end of the former.
func TestStartedGroupsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, lateFlow)
		n := w.start()
		run := w.submit(n, "late", nil)
		time.Sleep(time.Hour + time.Minute)
		op := w.operator()
		for _, text := range []string{"1-x", "2-y"} {
			for _, name := range []string{"seen", "vote"} {
				k := map[string]int{"vote": 0, "seen": 2}[name]
				ev := machine.SignalReceived{Name: name, Payload: payload(fmt.Sprintf("%q", text[k:k+1]))}
				to, err := op.Receiver(t.Context(), run, ev)
				if err != nil || to.Run == run {
					t.Fatalf("the receiver of %s is %+v, err = %v, want the run of a group", name, to, err)
				}
				w.signal(to.Run, ev)
			}
			time.Sleep(time.Minute)
		}
		if votes := output(t, w.wait(n, run, status.RunSucceeded), "votes"); votes != "1-x 2-y" {
			t.Errorf("votes = %s, want 1-x 2-y", votes)
		}
		n.drain(t)
	})
}

// An engine that dies before or after any of its commits loses no early signal of a group, and no signal
// is taken twice. So it may also die after the handover, and before the run of the group is stored.
func TestEarlySignalSurvivesACrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k, crashed := 1, true; crashed; k++ {
			crashed = false
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, lateFlow)
				n := w.start()
				run := w.submit(n, "late", nil)
				time.Sleep(time.Minute)
				for _, s := range []string{"vote 1", "seen x", "vote 2", "seen y"} {
					w.signal(run, machine.SignalReceived{Name: s[:4], Payload: payload(fmt.Sprintf("%q", s[5:]))})
				}
				n.drain(t)
				store := w.faulty()
				first := w.start()
				store.plan = func(c int, isAfter bool) error {
					if c == k && isAfter == after {
						crashed = true
						store.down.Store(true)
						first.StopNow()
						return errDown
					}
					return nil
				}
				if err := first.Adopt(t.Context(), run); err != nil && !crashed {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Hour)
				first.kill(t)
				w.store = w.mem
				second := w.start()
				if votes := output(t, w.wait(second, run, status.RunSucceeded), "votes"); votes != "1-x 2-y" {
					t.Errorf("commit %d: votes = %s, want 1-x 2-y", k, votes)
				}
				w.wantChildren(run, status.RunSucceeded, status.RunSucceeded)
				second.drain(t)
			})
		}
		if t.Failed() {
			return
		}
	}
}
