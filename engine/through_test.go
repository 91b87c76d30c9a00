package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// throughFlow has a group in a group whose step parks, or whose undo fails.
const throughFlow = `
workflow "trip" {
  deadline = "30d"
  step "first" {
    action = agent.shop.reserve
    input { name = "first" }
  }
  group "outer" {
    depends_on = [step.first]
    group "inner" {
      step "charge" {
        action = agent.shop.charge
        input { name = "charge" }
        retry {
          max_attempts = 1
          on_exhausted = "park"
        }
      }
    }
  }
}`

// busy is a script that fails each call. Another call may succeed.
func busy(context.Context, int) error { return &sdk.Failure{Code: "busy"} }

// A run needs a person if the run of a group in a group does. Wait and Follow end, on the engine of
// the run and on another one, and Follow names the run of the group. After the decision of the
// person they wait for the end of the run.
func TestWaitEndsWhenAChildNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, throughFlow)
		fails := true
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if fails {
				return busy(ctx, n)
			}
			return nil
		})
		n, other := w.start(), w.start()
		run := w.submit(n, "trip", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if s, err := n.Wait(ctx, run); err != nil || s.Status().Final() {
			t.Fatalf("Wait on the engine of the run: %v, %v", s, err)
		}
		child := w.children(w.children(run)[0].Run)[0]
		if child.State != status.RunParked {
			t.Fatalf("the run of the inner group is %s", child.State)
		}
		var through store.RunRow
		s, err := other.Follow(ctx, run, 0, nil, journal.FollowOptions{Through: func(r store.RunRow) { through = r }})
		if err != nil || s.Status().Final() || through.Run != child.Run {
			t.Fatalf("Follow on another engine: %v, through %q", err, through.Name)
		}
		fails = false
		w.verb(n, child.Run, machine.RetryRequested{By: "ann"})
		w.wait(other, run, status.RunSucceeded)
		other.drain(t)
		n.drain(t)
	})
}

// A parent that turns back cancels its parked child: the child does not need a person, and Wait waits
// for the end.
func TestWaitOutlastsAChildThatTurnsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, throughFlow)
		w.shop.on("charge", busy)
		n := w.start()
		run := w.submit(n, "trip", nil)
		time.Sleep(time.Minute)
		if err := w.ask(run, machine.CancelRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, run, status.RunCancelled)
		n.drain(t)
	})
}

// A child that is parked and waits for the decision of its inbox does not end Wait.
func TestWaitIgnoresAChildWithMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, throughFlow)
		fails := true
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if fails {
				return busy(ctx, n)
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "trip", nil)
		time.Sleep(time.Minute)
		child := w.children(w.children(run)[0].Run)[0]
		n.kill(t)
		fails = false
		w.post(child.Run, store.MessageVerb, machine.RetryRequested{By: "ann"}, time.Now())
		w.wait(w.start(), run, status.RunSucceeded)
	})
}
