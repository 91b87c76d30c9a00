package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// The views show the last names of a run's steps and instances, also if a step was renamed twice.
func TestStepsThatWereRenamedTwice(t *testing.T) {
	const source = `
workflow "w" {
  step "ask" {
    for_each = toset(["a", "b"])
    wait { signal = "go" }
  }
}`
	renamed := func(from, to string) string {
		return strings.Replace(source, `"ask"`, `"`+to+`"`, 1) + "\nmoved {\n  from = step." + from + "\n  to   = step." + to + "\n}\n"
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, source+orderFlow)
		n := w.start()
		run := w.submit(n, "w", nil)
		time.Sleep(time.Minute)
		names := func() string {
			rows, err := w.mem.StepRows(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, r := range rows {
				out = append(out, r.Name)
			}
			return strings.Join(out, " ")
		}
		for _, c := range []struct{ from, to, want string }{
			{"ask", "request", `request request["a"] request["b"]`},
			{"request", "wait", `wait wait["a"] wait["b"]`},
		} {
			w.moveRun(run, define(t, renamed(c.from, c.to)+orderFlow, w.shop.agent))
			time.Sleep(time.Minute)
			if got := names(); got != c.want {
				t.Errorf("after the move to %s the steps are %s, want %s", c.to, got, c.want)
			}
		}
		for range 2 {
			w.signal(run, machine.SignalReceived{Name: "go"})
			time.Sleep(time.Minute)
		}
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}
