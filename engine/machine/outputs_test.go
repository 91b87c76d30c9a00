package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/story"
)

// Outputs show as soon as the steps that they refer to have ended well. An output that cannot be
// evaluated yet is left out. A run that turns back shows none.
func TestOutputsShowEarly(t *testing.T) {
	of := func(i int) func(*dsl.Scope) (dsl.Value, error) {
		return func(sc *dsl.Scope) (dsl.Value, error) { return sc.Step(i).One.Output, nil }
	}
	wf := flow(do("a"), do("b", after("a")), do("c", after("b")))
	wf.Outputs = []dsl.Output{
		{Name: "vars", Value: func(sc *dsl.Scope) (dsl.Value, error) { return sc.Vars, nil }},
		{Name: "first", After: []int{0}, Sensitive: true, Value: of(0)},
		{Name: "both", After: []int{0, 1}, Value: of(1)},
		{Name: "broken", After: []int{0}, Value: func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errors.New("no") }},
	}
	p := start(t, wf, "do a")
	shows := func(want string) {
		t.Helper()
		before := p.s.Clone()
		var got []string
		for _, o := range story.KnownOutputs(p.s, wf) {
			if o.Sensitive != (o.Name == "first") {
				t.Errorf("output %s: sensitive is %v", o.Name, o.Sensitive)
			}
			got = append(got, o.Name+"="+string(o.Value.JSON()))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
		if err := sameFold(before, p.s); err != nil {
			t.Errorf("the state has changed: %v", err)
		}
		if story.KnownOutputs(p.s, nil) != nil && !p.s.Status().Final() {
			t.Error("outputs without a workflow")
		}
	}
	vars := "vars=" + string(p.s.Vars().JSON())
	shows(vars)
	p.okWith("a", `1`, "do b")
	shows(vars + " first=1")
	p.okWith("b", `2`, "do c")
	shows(vars + " first=1 both=2")
	p.okWith("c", `3`).is("succeeded")
	if got := len(story.KnownOutputs(p.s, wf)); got != 4 {
		t.Errorf("a run that has succeeded shows %d outputs", got)
	}
	p = start(t, wf, "do a")
	p.okWith("a", `1`, "do b")
	p.fail("b", "broken", "undo a")
	shows("")
}
