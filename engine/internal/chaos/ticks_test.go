package chaos

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// tickSchedules is the number of schedules that are due at the same minute.
const tickSchedules = 20

// T1, T8: twenty schedules of four engines are due at the same minute. One engine dies and one freezes
// between the submission of a run and the move of its schedule. Each tick has exactly one run.
func TestTicksOfFourEngines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	at := time.Now().UTC().Add(90 * time.Second).Truncate(time.Minute) // in 30 s or more: all engines serve by then
	var lines strings.Builder
	for i := range tickSchedules {
		fmt.Fprintf(&lines, "  schedule \"s%02d\" {\n    cron = \"%d %d %d %d *\"\n  }\n", i, at.Minute(), at.Hour(), at.Day(), at.Month())
	}
	f := heard(w.URL, lines.String())
	w.must("publish", w.write("ticks/w.hcl", f.Source))
	a := w.StartEngine("a", "tick.submitted=kill@3")
	b := w.StartEngine("b", "tick.submitted=stop@2")
	w.StartEngine("c", "tick.submitted=pause=1s@2")
	w.StartEngine("d", "")
	frozen := false
	w.Await("all ticks to have a run", 2*time.Minute, func() bool {
		if !frozen && stopped(b.Pid()) {
			frozen = true
			w.Note("b is frozen")
			time.Sleep(2 * lease) // freezing for this long is the fault
			if err := b.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			w.Note("b thaws")
		}
		out, code := w.Command("schedule", "list")
		return code == 0 && strings.Count(out, at.Format("20060102T150405Z")) == tickSchedules
	})
	w.Note("a has died: %t, b was frozen: %t", a.Ended(), frozen)
	rows, err := w.store.Runs(t.Context(), store.RunFilter{Workflow: "w"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range tickSchedules {
		name, n := fmt.Sprintf("w.s%02d.%s", i, at.Format("20060102T150405Z")), 0
		for _, r := range rows {
			if r.Name == name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d runs, want one", name, n)
		}
	}
	w.adoptAll(f, tickSchedules)
	w.AwaitRest(time.Minute)
	w.Judge()
}
