package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// family has a parent with one child run between two of its steps. If last is "deny", the parent
// fails after its child has succeeded, and both are undone.
func family(url, last string) (parent, kid Flow) {
	kid = flowOf(url, func(b *strings.Builder, url string) { b.WriteString("workflow \"kid\" {\n") },
		flowStep{Step{Name: "k0", Action: "do"}, "linger:300ms", "", ""},
		flowStep{Step{Name: "k1", Action: "once", After: []int{0}}, "lose", "lose", ""},
	)
	withKid := func(b *strings.Builder, url string) {
		var own strings.Builder
		head(&own, url)
		b.WriteString(strings.Replace(own.String(), "workflow \"w\"", kid.Source+"workflow \"w\"", 1))
	}
	parent = flowOf(url, withKid,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}, Gate: "workflow = workflow.kid"}, last, "", ""},
	)
	return parent, kid
}

// restOfFamilies waits until the parents and their children are at rest, checks that each parent
// has one child with the status want, and lets Judge check the children, too.
func (w *World) restOfFamilies(runs []Run, kid Flow, want status.RunState) {
	w.T.Helper()
	w.AwaitRest(120 * time.Second)
	for _, r := range runs {
		rows, err := w.store.Runs(w.T.Context(), store.RunFilter{Parent: r.ID})
		if err != nil || len(rows) != 1 {
			w.T.Fatalf("%s has %d children, err = %v, want one", r.Name, len(rows), err)
		}
		w.adopt(Run{ID: rows[0].Run, Name: rows[0].Name, Flow: kid})
	}
	w.AwaitRest(60 * time.Second)
	for _, r := range w.Runs() {
		if head, err := w.head(r.ID); err != nil || head.State != want {
			w.T.Errorf("%s is %v, err = %v, want %v", r.Name, head.State, err, want)
		}
	}
}

// playFamily has the engine of a parent and its child die while the child is undone.
func playFamily(t *testing.T, w *World, point string) {
	parent, kid := family(w.URL, "deny")
	runs := w.Submit(parent, 1)
	a := w.StartEngine("a", kill(point))
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("a is dead")
	w.StartEngine("b", "")
	w.restOfFamilies(runs, kid, status.RunCompensated)
}

// T1 for families: kill -9 where a child run is submitted, has ended, and is undone.
func TestKillFamilies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"child.submitted", "child.ended", "child.undo_posted", "record.before/Started", "record.after/Started",
		"record.before/CompensateRequested", "record.after/CompensateRequested", "record.after/TakenOver",
	} {
		t.Run(strings.ReplaceAll(point, "/", ":"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			playFamily(t, w, point)
			w.Judge()
		})
	}
}

// The engine of the parent dies, that of the child, or both, one after the other.
func TestKillEnginesOfFamilies(t *testing.T) {
	t.Parallel()
	for seed, last := range []string{"", "deny"} {
		t.Run(fmt.Sprintf("%q", last), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, uint64(seed))
			parent, kid := family(w.URL, last)
			runs := w.Submit(parent, 6)
			engines := []*Process{w.StartEngine("a", ""), w.StartEngine("b", "")}
			w.StartEngine("c", "")
			for i, p := range engines {
				w.awaitCalls(4 + 8*i)
				p.Kill()
				w.Note("%s is dead", p.Name)
			}
			want := status.RunSucceeded
			if last != "" {
				want = status.RunCompensated
			}
			w.restOfFamilies(runs, kid, want)
			w.Judge()
		})
	}
}
