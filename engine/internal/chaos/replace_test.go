package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// replaced returns a workflow whose submissions replace the open run of its only key. With a pivot, a run
// waits 3 s after its only call and cannot be cancelled. Without a pivot, its second call takes 700 ms.
func replaced(url string, pivot bool) Flow {
	steps := []flowStep{{Step{Name: "s0", Action: "do"}, "", "", ""}}
	if !pivot {
		steps = append(steps, flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "linger:700ms", "", ""})
	}
	f := flowOf(url, func(b *strings.Builder, url string) {
		head(b, url)
		b.WriteString("  unique {\n    key         = \"k\"\n    on_conflict = \"replace\"\n  }\n")
		if pivot {
			b.WriteString("  step \"w\" {\n    depends_on = [step.s0]\n    timer { duration = \"3s\" }\n  }\n")
		}
	}, steps...)
	if pivot {
		f.Source = strings.Replace(f.Source, "step \"s0\" {\n", "step \"s0\" {\n    pivot   = true\n", 1)
	}
	return f
}

// playReplace lets an engine die when a run may start that has replaced another one, or when it has to be
// cancelled because the other run has reached the goal. Another engine starts the run, or cancels it.
func playReplace(t *testing.T, w *World, point string) {
	beaten := strings.HasPrefix(point, "key.beaten")
	f := replaced(w.URL, beaten)
	first := w.Submit(f, 1)[0]
	a := w.StartEngine("a", kill(point))
	w.awaitCalls(1)
	if beaten {
		w.Await("the first run to pass its pivot", 20*time.Second, func() bool {
			r, err := w.store.Run(t.Context(), first.ID)
			return err == nil && r.State == status.RunWaiting
		})
	}
	second := w.apply(f, "second")
	rescue(w, a, point)
	if beaten {
		w.wantEnd(first, status.RunSucceeded)
		w.wantEnd(second, status.RunCancelled)
		return
	}
	w.wantEnd(first, status.RunCancelled)
	w.wantEnd(second, status.RunSucceeded)
}

// apply submits a run with the command, which has the key of the state as the engine has it.
func (w *World) apply(f Flow, name string) Run {
	w.T.Helper()
	w.must("apply", w.write("applied/w.hcl", f.Source), "--run-id", name, "--detach")
	row, err := w.store.Find(w.T.Context(), name)
	if err != nil {
		w.T.Fatal(err)
	}
	r := Run{ID: row.Run, Name: row.Name, Flow: f}
	w.adopt(r)
	return r
}

// playHeld kills the command that submits a run between its two tries: the first one has found that
// another run holds the key. Nothing is cancelled. The command is repeated, and replaces the run.
func playHeld(t *testing.T, w *World, point string) {
	f := replaced(w.URL, false)
	path := w.write("applied/w.hcl", f.Source)
	first := w.Submit(f, 1)[0]
	submit := []string{"apply", path, "--run-id", "second", "--detach"}
	if out, code := w.CommandAt(kill(point), submit...); code != -1 {
		t.Fatalf("the command was not killed: exit %d\n%s", code, out)
	}
	if r, err := w.store.Run(t.Context(), first.ID); err != nil || r.State.Final() {
		t.Fatalf("the first run is %v, err = %v", r.State, err)
	}
	second := w.apply(f, "second")
	w.StartEngine("b", "")
	w.AwaitRest(time.Minute)
	w.wantEnd(first, status.RunCancelled)
	w.wantEnd(second, status.RunSucceeded)
}

// wantEnd checks how a run has ended.
func (w *World) wantEnd(r Run, state status.RunState) {
	w.T.Helper()
	if got, err := w.store.Run(w.T.Context(), r.ID); err != nil || got.State != state {
		w.T.Errorf("run %s is %v, err = %v, want %v", r.Name, got.State, err, state)
	}
}
