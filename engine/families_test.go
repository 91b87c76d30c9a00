package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// Families in random worlds: several engines die, freeze out of their lease or stop in order, calls
// fail, are slow or lose their answers, and people cancel parents. In the end every parent and every
// child has ended, and what is left at the far side fits: a family is wholly done or wholly undone.
func TestFamiliesInRandomWorlds(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomFamilies(t, uint64(seed)) })
		})
	}
}

func randomFamilies(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, familyFlow)
	var mu sync.Mutex
	healed := false
	chance := func(percent int) bool {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(100) < percent
	}
	calm := func() bool { mu.Lock(); defer mu.Unlock(); return healed }
	fate := func(ctx context.Context, _ int) error {
		switch {
		case calm():
		case chance(12):
			return &sdk.Failure{Code: "card_declined", Permanent: true}
		case chance(30):
			select {
			case <-time.After(time.Duration(1+len(ctx.Done())) * 3 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	for _, name := range []string{"first", "last", "after", "reserve-berlin", "label-berlin", "reserve-a", "label-a", "label-b", "reserve-c"} {
		w.shop.on(name, fate)
	}
	w.inv.after = func(c invoke.Call, reply sdk.Reply) (sdk.Reply, bool) {
		return reply, calm() || !chance(6) // the answer is lost
	}
	nodes := []*testNode{w.start(), w.start(), w.start()}
	var parents []status.RunID
	for _, flow := range []string{"order", "careful", "hurried", "many", "nested"} {
		parents = append(parents, w.submit(nodes[len(parents)%len(nodes)], flow, nil))
	}
	what := rand.New(rand.NewPCG(seed, 2)) // its own source: rng belongs to the goroutines of calls
	for range 12 {
		time.Sleep(time.Duration(what.IntN(4000)) * time.Millisecond)
		i := what.IntN(len(nodes))
		switch what.IntN(4) {
		case 0, 1:
			nodes[i].kill(t)
			nodes[i] = w.start()
		case 2:
			nodes[i].drain(t)
			nodes[i] = w.start()
		case 3:
			if what.IntN(2) == 0 {
				w.post(parents[what.IntN(len(parents))], 1, machine.CancelRequested{By: "ann"}, time.Time{})
			}
		}
	}
	mu.Lock()
	healed = true
	mu.Unlock()
	time.Sleep(2 * time.Hour)
	var check func(run status.RunID, undone bool)
	check = func(run status.RunID, undone bool) {
		s := w.check(run)
		if !s.Status().Final() {
			t.Fatalf("seed %d: run %s of %s is %v two hours later\n%s", seed, s.Name(), s.Run().Workflow, s.Status(), w.transcript(run))
		}
		succeeded := s.Status() == status.RunSucceeded
		if undone && succeeded {
			t.Errorf("seed %d: child run %s has succeeded, but its parent was undone", seed, s.Name())
		}
		for _, c := range w.children(run) {
			check(c.Run, !succeeded)
		}
	}
	for _, run := range parents {
		check(run, false)
	}
	w.shop.mu.Lock()
	for key, n := range w.shop.applied {
		if n > 1 {
			t.Errorf("seed %d: key %s took effect %d times", seed, key, n)
		}
	}
	w.shop.mu.Unlock()
	for _, n := range nodes {
		n.drain(t)
	}
}

// A child run that has succeeded and has nothing to undo is undone with its parent, too: it ends as
// failed in one step. A store that refused this change of state would leave the parent waiting.
func TestChildWithNothingToUndo(t *testing.T) {
	const flow = `
workflow "order" {
  deadline = "1h"
  group "sum" {
    for_each = toset(["a", "b"])
    step "value" { value = each.key }
    output "x" { value = step.value.output }
  }
  step "last" {
    action     = agent.shop.charge
    depends_on = [group.sum]
    input { name = "last" }
  }
}`
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flow)
		w.shop.on("last", refuse("card_declined"))
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunCompensated)
		w.wantChildren(run, status.RunFailed, status.RunFailed)
		n.drain(t)
	})
}
