package apply

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// The text about a run that was taken over names the steps that have begun: also a step that waits for a
// time or a signal, and the instances of a for_each step in its place.
func TestStandsAt(t *testing.T) {
	row := func(name string, state status.StepState) store.StepView {
		v := store.StepView{Name: name}
		v.State = state
		return v
	}
	for _, c := range []struct {
		steps []store.StepView
		want  string
	}{
		{[]store.StepView{row("a", status.StepSucceeded), row("approve", status.StepWaiting), row("b", status.StepPending)}, "approve (waiting)"},
		{[]store.StepView{row("items", status.StepWaiting), row(`items["x"]`, status.StepSucceeded), row(`items["y"]`, status.StepBackoff)}, `items["y"] (backoff)`},
		{[]store.StepView{row("a", status.StepSucceeded), row("b", status.StepPending), row("c", status.StepPending)}, "b (not begun)"},
		{[]store.StepView{row("a", status.StepSucceeded)}, ""},
	} {
		if got := currentSteps(c.steps); got != c.want {
			t.Errorf("standsAt(%v) = %q, want %q", c.steps, got, c.want)
		}
	}
}
