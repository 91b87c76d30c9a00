package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	kinKeys   = 2 // instances of the group
	kinRounds = 3 // iterations of the loop
)

// kin has everything that keeps a run waiting for something else than a call: a child run, a timer, a
// group with several instances, a loop of calls, and a signal. The parameter last is the fault of the
// last call: with "deny" everything is undone.
func kin(url, last string) (parent, kid, group Flow) {
	kid = flowOf(url, func(b *strings.Builder, url string) { b.WriteString("workflow \"kid\" {\n") },
		flowStep{Step{Name: "k0", Action: "do"}, "linger:300ms", "", ""},
		flowStep{Step{Name: "k1", Action: "once", After: []int{0}}, "lose", "lose", ""},
	)
	group = flowOf(url, func(b *strings.Builder, url string) {
		b.WriteString("  group \"g\" {\n    depends_on = [step.s1]\n    for_each = toset([\"a\", \"b\"])\n")
	},
		flowStep{Step{Name: "g0", Action: "do"}, "linger:200ms", "lose", ""},
		flowStep{Step{Name: "g1", Action: "once", After: []int{0}}, "vanish", "", ""},
	)
	loop := fmt.Sprintf(`  step "loop" {
    depends_on = [group.g]
    action  = agent.far.do
    timeout = %q
    retry {
      max_attempts     = 6
      initial_interval = "50ms"
    }
    input { faults = "linger:100ms" }
    compensation = "none"
    repeat {
      max_iterations = %d
      interval       = "100ms"
    }
  }
`, stepTimeout, kinRounds)
	withKin := func(b *strings.Builder, url string) {
		var own strings.Builder
		head(&own, url)
		b.WriteString(strings.Replace(own.String(), "workflow \"w\"", kid.Source+"workflow \"w\"", 1))
		b.WriteString(group.Source + loop)
		b.WriteString("  step \"gate\" {\n    depends_on = [step.loop]\n    " + gateTimer + "\n  }\n")
	}
	parent = flowOf(url, withKin,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}, Gate: "workflow = workflow.kid"}, "", "", ""},
		flowStep{Step{Name: "s2", Action: "do", After: []int{1}, Gate: strings.Replace(gateSignal, "deadline", "depends_on = [step.gate]\n    deadline", 1)}, last, "", ""},
	)
	// flowOf writes a depends_on line for the gate of s2. The gate must wait for the loop, not for s1.
	parent.Source = strings.Replace(parent.Source, "depends_on = [step.s1]\n    depends_on = [step.gate]", "depends_on = [step.gate]", 1)
	return parent, kid, group
}

// restOfKin waits until the runs and their children are at rest, and checks that none is missing, that
// all have the status want, and that each iteration of a loop has one effect. Then it lets Judge check
// all runs.
func (w *World) restOfKin(runs []Run, kid, group Flow, want status.RunState) Verdict {
	w.T.Helper()
	w.AwaitRest(3 * time.Minute)
	for _, r := range runs {
		rows, err := w.store.Runs(w.T.Context(), store.RunFilter{Parent: r.ID})
		kids := 0
		for _, row := range rows {
			f := group
			if row.WorkflowName == "kid" {
				f = kid
				kids++
			}
			w.adopt(Run{ID: row.Run, Name: row.Name, Flow: f})
		}
		if err != nil || len(rows) != 1+kinKeys || kids != 1 {
			w.T.Fatalf("%s has %d children, %d of them kids, err = %v, want one kid and %d groups", r.Name, len(rows), kids, err, kinKeys)
		}
	}
	w.AwaitRest(2 * time.Minute)
	for _, r := range w.Runs() {
		if head, err := w.head(r.ID); err != nil || head.State != want {
			w.T.Errorf("%s is %v, err = %v, want %v", r.Name, head.State, err, want)
		}
	}
	w.loops(runs)
	return w.Judge()
}

// loops checks that each iteration of the loop of a run has exactly one effect.
func (w *World) loops(runs []Run) {
	w.T.Helper()
	snap, err := w.Ledger.Snapshot(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	effects := map[string][]int{}
	for _, e := range snap.Entries {
		if e.Step == "loop" {
			effects[e.Run] = append(effects[e.Run], e.Applied)
		}
	}
	for _, r := range runs {
		if got := effects[r.Name]; !slices.Equal(got, []int{1, 1, 1}) {
			w.T.Errorf("the iterations of the loop of %s have %v effects, want one each (I4, I5)", r.Name, got)
		}
	}
}

// Waits, timers, child runs, groups and loops, while the engines of parents and children are killed,
// frozen and cut off from the database: the engine of a parent, that of a child, and both one after the
// other (I1 to I10).
func TestFaultsOfKin(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var mu sync.Mutex
	var sum Verdict
	rounds := times(1, 20)
	faults := []string{"kill", "freeze", "cut"}
	t.Run("faults", func(t *testing.T) {
		for _, fault := range faults {
			for i := range rounds {
				last := []string{"", "deny"}[(i+len(fault))%2]
				t.Run(fmt.Sprintf("%s/%d", fault, i), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, uint64(i))
					parent, kid, group := kin(w.URL, last)
					runs := w.Submit(parent, 4)
					v := w.strikeKin(fault, runs, kid, group, last)
					mu.Lock()
					defer mu.Unlock()
					sum.add(v)
				})
			}
		}
	})
	if sum.Signals == 0 && full {
		t.Error("void: no signal has ended a wait")
	}
	report.count("waits, children, groups and loops", rounds*len(faults), sum, began)
}

// strikeKin lets three engines work, and strikes two of them, one after the other, at random moments of
// the runs.
func (w *World) strikeKin(fault string, runs []Run, kid, group Flow, last string) Verdict {
	w.T.Helper()
	var engines []*Process
	var ways []*way
	for _, name := range []string{"a", "b"} {
		y := newWay(w.T, w)
		ways = append(ways, y)
		engines = append(engines, w.StartEngineOn(y.DSN, name, ""))
	}
	w.StartEngine("c", "")
	// A run makes about 20 calls.
	calls := 0
	for i, p := range engines {
		calls += 4 + w.Rng.IntN(8*len(runs))
		w.awaitCalls(calls)
		switch fault {
		case "kill":
			p.Kill()
			w.Note("%s is dead", p.Name)
		case "freeze":
			if err := p.Signal(syscall.SIGSTOP); err != nil {
				w.T.Fatal(err)
			}
			w.Note("%s is frozen", p.Name)
			time.Sleep(time.Duration(float64(lease) * []float64{0.5, 2}[w.Rng.IntN(2)])) // the fault
			if err := p.Signal(syscall.SIGCONT); err != nil {
				w.T.Fatal(err)
			}
			w.Note("%s thaws", p.Name)
		case "cut":
			ways[i].strike("timeout", []string{"downstream", "upstream"}[w.Rng.IntN(2)], `{"timeout":0}`, time.Duration(float64(lease)*[]float64{0.5, 2}[w.Rng.IntN(2)]))
		}
		w.signal("after " + p.Name)
	}
	want := status.RunSucceeded
	if last != "" {
		want = status.RunCompensated
	}
	v := w.restOfKin(runs, kid, group, want)
	if fault == "kill" {
		return v
	}
	for _, p := range engines {
		if p.Ended() {
			w.T.Errorf("the engine %s has ended:\n%s", p.Name, p.Output())
		}
	}
	return v
}
