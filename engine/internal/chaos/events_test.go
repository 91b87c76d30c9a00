package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// heard has two calls. The given lines stand in its workflow block.
func heard(url, lines string) Flow {
	withLines := func(b *strings.Builder, url string) {
		head(b, url)
		b.WriteString(lines)
	}
	return flowOf(url, withLines,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "", "", ""},
	)
}

// must runs a command that has to succeed, and returns what it prints.
func (w *World) must(args ...string) string {
	w.T.Helper()
	out, code := w.Command(args...)
	if code != 0 {
		w.T.Fatalf("engine %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// playEvents lets an engine die while it works on a good and a bad event. The good one starts one run
// and leaves the inbox, and the bad one is quarantined.
func playEvents(t *testing.T, w *World, point string) {
	f := heard(w.URL, "  on_event \"go\" { type = \"chaos.go\" }\n")
	w.must("publish", w.write("events/w.hcl", f.Source))
	w.must("event", "send", "chaos.go", "--id", "good")
	w.must("event", "send", "chaos.unknown", "--id", "bad")
	a := w.StartEngine("a", kill(point))
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("a is dead")
	w.StartEngine("b", "")
	w.Await("the inbox to have only the bad event", 2*time.Minute, func() bool {
		out, code := w.Command("event", "list")
		return code == 0 && !strings.Contains(out, "good") && strings.Contains(out, "bad") && strings.Contains(out, "quarantined")
	})
	rows, err := w.store.Runs(t.Context(), store.RunFilter{Workflow: "w"})
	if err != nil || len(rows) != 1 || rows[0].Name != "w:good" {
		t.Fatalf("the runs of the events are %v, err = %v, want only w:good", rows, err)
	}
	w.adopt(Run{ID: rows[0].Run, Name: rows[0].Name, Flow: f})
	w.AwaitRest(time.Minute)
}

// playReset kills the command that resets a goal around its one durable act, and repeats it. Then the
// key is free for a second run.
func playReset(t *testing.T, w *World, point string) {
	f := heard(w.URL, "  unique { key = \"k\" }\n")
	first := w.Submit(f, 1)[0]
	a := w.StartEngine("a", "")
	w.AwaitRest(time.Minute)
	if code, err := a.Terminate(30 * time.Second); err != nil || code != 0 {
		t.Fatalf("the engine ended with %d, %v", code, err)
	}
	reset := []string{"goal", "reset", "w", "k", "--reason", "test"}
	if out, code := w.CommandAt(kill(point), reset...); code != -1 {
		t.Fatalf("the command was not killed: exit %d\n%s", code, out)
	}
	w.Command(reset...) // refused if the first command has reset the goal
	if out := w.must("goal", "list"); !strings.Contains(out, "free") {
		t.Errorf("the key is not free:\n%s", out)
	}
	w.learnKey()
	if second := w.Submit(f, 1)[0]; second.ID == first.ID {
		t.Errorf("the second submission got the run %s again", first.Name)
	}
	w.StartEngine("b", "")
	w.AwaitRest(time.Minute)
}
