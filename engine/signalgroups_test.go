package engine_test

import (
	"context"
	"errors"
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
