package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A step whose child run was undone, but keeps an effect by declaration: the refusal of a restart does
// not say that nothing has undone the step, and does not advise a later step.
func TestRestartAfterAnUndoneChildThatKeepsEffects(t *testing.T) {
	for _, kind := range []string{"group", "child"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				w.shop.on("after", no)
				n := w.start()
				run := w.submit(n, kind, nil)
				w.wait(n, run, status.RunCompensated)
				w.shop.wantEffects(t, map[string]string{"first": "undone", "mail": "done", "pick": "undone", "box": "undone", "after": "nothing"})
				want := "a child run of step g keeps effects, although the run has undone the step: in the new run the step would take effect a second time; allow the second effect with --again"
				if why := w.refusals(run, "g", false); !strings.Contains(why, want) || strings.Contains(why, "nothing has undone it") {
					t.Errorf("a restart from g is refused because of %q, want %q", why, want)
				}
				if why := w.refusals(run, "first", true); why != "" {
					t.Errorf("a restart from first with --again is refused: %s", why)
				}
				n.drain(t)
			})
		})
	}
}
