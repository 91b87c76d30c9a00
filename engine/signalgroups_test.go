package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
)

// votesFlow has waits in groups: two keys, one after the other, and a group in each of them.
const votesFlow = `
workflow "votes" {
  group "voter" {
    for_each     = toset(["a", "b"])
    max_parallel = 1
    step "vote" {
      wait {
        signal  = "vote"
        payload = string
      }
    }
    group "check" {
      step "seen" {
        wait { signal = "seen" }
      }
      output "text" { value = "${step.vote.output}-${step.seen.output}" }
    }
    output "text" { value = group.check.output.text }
  }
  step "own" {
    wait { signal = "own" }
  }
  output "votes" { value = join(" ", [for key, v in group.voter : v.output.text]) }
}
workflow "both" {
  group "slow" {
    step "first" {
      timer { duration = "1h" }
    }
    step "late" {
      depends_on = [step.first]
      wait { signal = "go" }
    }
  }
  group "quick" {
    step "now" {
      wait { signal = "go" }
    }
  }
}`

// A signal to a run reaches the step of a group, at any depth, that waits for it. A signal with the same
// id counts once, also after the run of the group has ended.
func TestSignalReachesAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, votesFlow)
		n := w.start()
		run := w.submit(n, "votes", nil)
		time.Sleep(time.Minute)
		op := w.operator()
		send := func(s machine.SignalReceived, want string) {
			t.Helper()
			to, err := op.Receiver(t.Context(), run, s)
			if err != nil || !strings.Contains(to.Name, want) || to.Known {
				t.Fatalf("signal %s: the receiver is %+v, err = %v, want a run with %q in its name", s.Name, to, err, want)
			}
			w.signal(to.Run, s)
			time.Sleep(time.Minute)
		}
		refused := func(s machine.SignalReceived, want ...string) {
			t.Helper()
			to, err := op.Receiver(t.Context(), run, s)
			var refused *operator.RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("signal %s: the receiver is %+v, err = %v, want a refusal", s.Name, to, err)
			}
			for _, text := range want {
				if !strings.Contains(refused.Reason, text) {
					t.Errorf("signal %s: the reason %q lacks %q", s.Name, refused.Reason, text)
				}
			}
		}
		vote := func(text, id string) machine.SignalReceived {
			return machine.SignalReceived{Name: "vote", ID: id, Payload: payload(text)}
		}
		refused(vote(`{}`, ""), ".voter-a.", "the payload does not fit")
		send(vote(`"1"`, "id-1"), ".voter-a.")
		known := func() {
			t.Helper()
			if to, err := op.Receiver(t.Context(), run, vote(`"1"`, "id-1")); err != nil || !to.Known || !strings.Contains(to.Name, ".voter-a.") {
				t.Errorf("the receiver of a known id is %+v, err = %v", to, err)
			}
		}
		known()
		send(machine.SignalReceived{Name: "seen", Payload: payload(`"x"`)}, ".voter-a.")
		known() // the run of key a has ended, and key b waits for a vote
		send(vote(`"2"`, "id-2"), ".voter-b.")
		refused(vote(`"3"`, ""), "the step that waits for signal vote has ended")
		send(machine.SignalReceived{Name: "seen", Payload: payload(`"y"`)}, ".check.")
		if to, err := op.Receiver(t.Context(), run, machine.SignalReceived{Name: "own"}); err != nil || to.Run != run {
			t.Errorf("the receiver of the run's own signal is %+v, err = %v", to, err)
		}
		w.signal(run, machine.SignalReceived{Name: "own"})
		if votes := output(t, w.wait(n, run, status.RunSucceeded), "votes"); votes != "1-x 2-y" {
			t.Errorf("votes = %s, want 1-x 2-y", votes)
		}
		refused(vote(`"4"`, ""), "has ended: succeeded")
		n.drain(t)
	})
}

// A group that waits now comes before a group that would keep the signal for a later step. A signal that
// is in the inbox of a group is found by its id, so the same signal does not go to another group.
func TestSignalOfGroupsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, votesFlow)
		n := w.start()
		run := w.submit(n, "both", nil)
		time.Sleep(time.Minute)
		op := w.operator()
		receiver := func(s machine.SignalReceived, want string) operator.Receiver {
			t.Helper()
			to, err := op.Receiver(t.Context(), run, s)
			if err != nil || !strings.Contains(to.Name, want) {
				t.Fatalf("the receiver is %+v, err = %v, want a run with %q in its name", to, err, want)
			}
			return to
		}
		n.stop() // no engine takes the message out of the inbox
		<-n.done
		ev := machine.SignalReceived{Name: "go", ID: "id-1"}
		quick := receiver(ev, ".quick.")
		slow := w.wantChildren(run, status.RunWaiting, status.RunWaiting)[0]
		if slow.Run == quick.Run {
			slow = w.children(run)[1]
		}
		id, err := op.Ask(t.Context(), slow.Run, ev, "ann")
		if err != nil {
			t.Fatal(err)
		}
		receiver(ev, ".slow.")
		receiver(machine.SignalReceived{Name: "go", ID: "id-2"}, ".quick.")
		n = w.start()
		within(t, time.Minute, "answer", func(ctx context.Context) error { return op.Answer(ctx, slow.Run, id) })
		w.signal(quick.Run, machine.SignalReceived{Name: "go"})
		time.Sleep(time.Minute)
		ev.ID = ""
		receiver(ev, ".slow.") // no group waits now, and this one keeps the signal
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}

// A cancelled run that has passed its pivot in a group goes on until the group has ended. So a signal
// still reaches the group.
func TestSignalReachesAGroupPastItsPivot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "order" {
  group "ship" {
    step "pay" {
      action = agent.shop.reserve
      pivot  = true
      input { name = "pay" }
    }
    step "handed" {
      depends_on = [step.pay]
      deadline   = "1h"
      wait {
        signal     = "handed"
        on_timeout = "continue"
      }
    }
  }
}`)
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Minute)
		w.verb(n, run, machine.CancelRequested{By: "ann"})
		time.Sleep(time.Minute)
		to, err := w.operator().Receiver(t.Context(), run, machine.SignalReceived{Name: "handed"})
		if err != nil || !strings.Contains(to.Name, ".ship.") {
			t.Fatalf("the receiver is %+v, err = %v, want the run of the group", to, err)
		}
		w.signal(to.Run, machine.SignalReceived{Name: "handed"})
		w.wait(n, run, status.RunSucceeded)
		if to, err := w.operator().Receiver(t.Context(), run, machine.SignalReceived{Name: "handed"}); err == nil {
			t.Errorf("a run that has ended takes the signal: %+v", to)
		}
		n.drain(t)
	})
}

// ownFlow has a step of its own that waits for the same signal as its groups.
const ownFlow = `
workflow "own" {
  step "hold" {
    wait { signal = "hold" }
  }
  group "box" {
    depends_on = [step.hold]
    step "a" {
      wait { signal = "go" }
    }
    group "in" {
      depends_on = [step.a]
      step "b" {
        wait { signal = "go" }
      }
      output "v" { value = step.b.output }
    }
    output "v" { value = "${step.a.output}${group.in.output.v}" }
  }
  step "c" {
    depends_on = [group.box]
    wait { signal = "go" }
  }
  output "all" { value = "${group.box.output.v}${step.c.output}" }
}
workflow "slow" {
  group "box" {
    step "wake" {
      wait { signal = "wake" }
    }
    step "a" {
      depends_on = [step.wake]
      wait { signal = "go" }
    }
    output "v" { value = step.a.output }
  }
  step "c" {
    depends_on = [group.box]
    wait { signal = "go" }
  }
  step "other" {
    wait { signal = "other" }
  }
  step "d" {
    depends_on = [step.other]
    wait { signal = "go" }
  }
  output "all" { value = "${group.box.output.v}${step.c.output}${step.d.output}" }
}`

// Signals by the name of a run reach all its steps in the order in which these wait, although a later step of
// the run itself takes the same name. It does not matter how many of the signals come early.
func TestStepBehindAGroupDoesNotTakeItsSignals(t *testing.T) {
	for early := range 4 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, ownFlow)
			n := w.start()
			run := w.submit(n, "own", nil)
			time.Sleep(time.Minute)
			op := w.operator()
			send := func(name, text string) {
				t.Helper()
				ev := machine.SignalReceived{Name: name, Payload: payload(text)}
				to, err := op.Receiver(t.Context(), run, ev)
				if err != nil {
					t.Fatal(err)
				}
				w.signal(to.Run, ev)
				time.Sleep(time.Minute)
			}
			for k := range 4 {
				if k == early {
					send("hold", "null")
				}
				if k < 3 {
					send("go", fmt.Sprint(k+1))
				}
			}
			if all := output(t, w.wait(n, run, status.RunSucceeded), "all"); all != "123" {
				t.Errorf("with %d early signals: all = %s, want 123", early, all)
			}
			n.drain(t)
		})
	}
}

// While no step waits for a signal, it goes to the step that lacks one: first a step of the run itself,
// then one in a group that has started, and then a step of the run that depends on this group.
func TestSignalGoesToTheStepThatLacksOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ownFlow)
		n := w.start()
		run := w.submit(n, "slow", nil)
		time.Sleep(time.Minute)
		op := w.operator()
		for k, inBox := range []bool{false, true, false, false} {
			ev := machine.SignalReceived{Name: "go", Payload: payload(fmt.Sprint(k + 1))}
			to, err := op.Receiver(t.Context(), run, ev)
			if err != nil || strings.Contains(to.Name, ".box.") != inBox {
				t.Fatalf("the receiver of signal %d is %+v, err = %v", k+1, to, err)
			}
			w.signal(to.Run, ev)
		}
		for _, name := range []string{"wake", "other"} {
			ev := machine.SignalReceived{Name: name}
			to, err := op.Receiver(t.Context(), run, ev)
			if err != nil {
				t.Fatal(err)
			}
			w.signal(to.Run, ev)
			time.Sleep(time.Minute)
		}
		if all := output(t, w.wait(n, run, status.RunSucceeded), "all"); all != "213" && all != "231" {
			t.Errorf("all = %s, want 213 or 231", all)
		}
		n.drain(t)
	})
}

// idFlow has a group that a person can retry, and a group that takes a signal twice.
const idFlow = `
workflow "ids" {
  compensation { mode = "manual" }
  step "hold" {
    wait { signal = "hold" }
  }
  group "box" {
    depends_on = [step.hold]
    step "a" {
      wait { signal = "go" }
    }
    group "in" {
      depends_on = [step.a]
      step "b" {
        wait { signal = "go" }
      }
    }
    step "never" {
      wait { signal = "never" }
    }
  }
}`

// The id of a signal counts once over a run and all its groups: also if the signal came early and was handed
// over, if it is sent to the run of a group, and if the group was retried and has another run.
func TestIDOfASignalCountsOnceOverAllRunsOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, idFlow)
		n := w.start()
		run := w.submit(n, "ids", nil)
		time.Sleep(time.Minute)
		op := w.operator()
		send := func(to status.RunID, ev machine.SignalReceived) {
			t.Helper()
			r, err := op.Receiver(t.Context(), to, ev)
			if err != nil || r.Known {
				t.Fatalf("the receiver is %+v, err = %v", r, err)
			}
			w.signal(r.Run, ev)
			time.Sleep(time.Minute)
		}
		known := func(to status.RunID, id string) {
			t.Helper()
			if r, err := op.Receiver(t.Context(), to, machine.SignalReceived{Name: "go", ID: id, Payload: payload(`1`)}); err != nil || !r.Known {
				t.Errorf("the receiver of the known id %s is %+v, err = %v", id, r, err)
			}
		}
		early := machine.SignalReceived{Name: "go", ID: "id-1", Payload: payload(`1`)}
		send(run, early)
		send(run, machine.SignalReceived{Name: "hold"})
		var box, in status.RunID
		for _, r := range w.children(run) {
			box = r.Run
		}
		for _, r := range w.children(box) {
			in = r.Run
		}
		for _, r := range []status.RunID{run, box, in} {
			known(r, "id-1")
		}
		w.signal(box, early) // without a look at other runs: the run of the group knows the id itself
		time.Sleep(time.Minute)
		w.wantChildren(box, status.RunWaiting) // it has not taken the same signal a second time
		send(run, machine.SignalReceived{Name: "go", ID: "id-2", Payload: payload(`2`)})
		for _, r := range []status.RunID{run, box, in} {
			known(r, "id-1")
		}
		known(run, "id-2") // the inner group has ended

		w.verb(n, box, machine.CancelRequested{By: "ann"})
		time.Sleep(time.Minute)
		w.verb(n, run, machine.RetryRequested{Step: "box", NewKey: true, By: "ann"})
		time.Sleep(time.Minute)
		if got := len(w.children(run)); got != 2 {
			t.Fatalf("the run has %d runs of the group, want 2", got)
		}
		known(run, "id-1")
		known(run, "id-2")
		n.drain(t)
	})
}
