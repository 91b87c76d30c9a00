package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// groupFlow has a group with a limit of open runs for each region. Its steps take 1 s, so that a second
// group of the region must wait, or fails.
const groupFlow = `
workflow "load" {
  deadline = "10h"
  variable "region" { default = "eu" }
  variable "keys" { default = "a" }
  group "parcel" {
    for_each = toset(split(",", var.keys))
    concurrency {
      limit     = 2
      key       = var.region
      when_full = "WHEN"
    }
    CATCH
    step "pack" {
      action = agent.shop.reserve
      input { name = "reserve" }
    }
  }
  step "last" {
    value      = { for k, g in group.parcel : k => g.status }
    depends_on = [group.parcel]
  }
  output "ends" { value = step.last.output }
}`

// loads returns a world with groupFlow and the meter of its calls.
func loads(t *testing.T, when, catch string) (*world, *meter) {
	w, m := newWorld(t, strings.NewReplacer("WHEN", when, "CATCH", catch).Replace(groupFlow)), &meter{}
	w.shop.on("reserve", m.enter)
	return w, m
}

// Two engines, and runs whose groups share a limit of 2: the groups of all runs are counted together,
// each region has its own limit, and all runs end. A run itself needs no place.
func TestConcurrencyOfGroupsOfTwoEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := loads(t, "queue", "")
		a, b := w.start(), w.start()
		var runs []status.RunID
		for n := range 8 {
			runs = append(runs, w.submit([]*testNode{a, b}[n%2], "load", map[string]string{"keys": "a,b,c"}))
		}
		other := w.submit(a, "load", map[string]string{"region": "us"})
		start := time.Now()
		for w.check(other).Status() != status.RunSucceeded {
			time.Sleep(100 * time.Millisecond)
			if time.Since(start) > 10*time.Second {
				t.Fatalf("the run of another region is %v", w.check(other).Status())
			}
		}
		for _, run := range runs {
			for w.check(run).Status() != status.RunSucceeded {
				time.Sleep(100 * time.Millisecond)
				if time.Since(start) > time.Hour {
					t.Fatalf("run %d is %v\n%s", run, w.check(run).Status(), w.transcript(run))
				}
			}
			w.wantChildren(run, status.RunSucceeded, status.RunSucceeded, status.RunSucceeded)
		}
		if m.most != 3 { // two of the region eu, and the one of the region us
			t.Errorf("%d calls at the same time, want 3", m.most)
		}
		a.drain(t)
		b.drain(t)
	})
}

// With when_full = "reject" a group that finds no room fails with the code no_room, which its catch
// may name. A group that holds a place is not refused when the next engine asks for it again.
func TestConcurrencyOfGroupsRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := loads(t, "reject", `catch { errors = ["no_room"] }`)
		a := w.start()
		first := w.submit(a, "load", map[string]string{"keys": "a,b"})
		for len(w.children(first)) < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		second := w.submit(a, "load", map[string]string{"keys": "c"})
		s := w.wait(a, second, status.RunSucceeded)
		if got := output(t, s, "ends"); got != `{"c":"caught"}` {
			t.Errorf("ends = %s, want the group caught", got)
		}
		for v := range story.Nodes(s, w.def.Workflow("load")) {
			if v.Child != "" {
				t.Errorf("%s names the child run %s, which does not exist", v.Name, v.Child)
			}
		}
		a.kill(t)
		b := w.start()
		for start := time.Now(); !w.check(first).Status().Final(); {
			time.Sleep(100 * time.Millisecond)
			if time.Since(start) > time.Hour {
				t.Fatalf("run %d is %v\n%s", first, w.check(first).Status(), w.transcript(first))
			}
		}
		if got := output(t, w.check(first), "ends"); got != `{"a":"succeeded","b":"succeeded"}` {
			t.Errorf("ends = %s, want both groups succeeded\n%s", got, w.transcript(first))
		}
		if m.most > 4 { // a call of the dead engine may overlap with its repetition
			t.Errorf("%d calls at the same time", m.most)
		}
		w.wait(b, w.submit(b, "load", map[string]string{"keys": "d"}), status.RunSucceeded)
		b.drain(t)

		w, _ = loads(t, "reject", "")
		n := w.start()
		run := w.submit(n, "load", map[string]string{"keys": "a,b,c"})
		f := w.wait(n, run, status.RunFailed).Failure()
		if f.Code != "no_room" || !strings.Contains(f.Message, `concurrency of workflow "load.parcel", key "eu": 2 of 2 runs are open (`) ||
			!strings.Contains(f.Message, "catch the code no_room") {
			t.Errorf("failure = %+v", f)
		}
		n.drain(t)
	})
}

// A group that waits in line is cancelled with its workflow, and the place goes to the next one.
func TestGroupInLineIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := loads(t, "queue", "")
		n := w.start()
		var runs []status.RunID
		for i := range 4 {
			runs = append(runs, w.submit(n, "load", map[string]string{"keys": fmt.Sprintf("k%d", i)}))
			for len(w.children(runs[i])) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if c := w.children(runs[2])[0]; !c.InLine {
			t.Errorf("the third group is %+v, want it in line", c)
		}
		if err := n.Deliver(t.Context(), runs[2], machine.CancelRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, runs[2], status.RunCancelled)
		w.wantChildren(runs[2], status.RunCancelled)
		last := w.children(runs[3])[0].Run
		for w.check(last).Run().Awaits {
			time.Sleep(10 * time.Millisecond)
		}
		if c := w.children(runs[3])[0]; c.InLine {
			t.Errorf("the last group has started, but it is still in line: %+v", c)
		}
		for _, run := range []status.RunID{runs[0], runs[1], runs[3]} {
			w.wait(n, run, status.RunSucceeded)
		}
		n.drain(t)
	})
}
