package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// results shows the results of steps as an expression reads them.
func results(sc *dsl.Scope, steps ...int) string {
	var out []string
	one := func(r dsl.InstanceResult) string {
		text := r.Key + " " + r.Status + fmt.Sprintf(" %d", r.Attempts)
		if !r.Output.IsNull() {
			text += " " + string(r.Output.JSON())
		}
		return strings.TrimSpace(text + " " + r.ErrorCode)
	}
	for _, i := range steps {
		r := sc.Step(i)
		if !r.Each {
			out = append(out, one(r.One))
		}
		for _, inst := range r.Instances {
			out = append(out, one(inst))
		}
	}
	return strings.Join(out, ", ")
}

// The scope of a state has what expressions would read now, in each state of the run, and
// reading it does not change what is decided.
func TestScopeOfAState(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l"), maxFailures(1)), do("b", after("a")), do("c", after("b"))), "do a[k]", "do a[l]")
	want := func(text string) {
		t.Helper()
		if got := results(new(machine.Scratch).Scope(p.wf, p.s), 0, 1, 2); got != text {
			t.Errorf("the scope has\n%s, want\n%s", got, text)
		}
	}
	want("k running 1, l running 1, pending 0, pending 0")
	p.ok("a[k]")
	want(`k succeeded 1 {"id":"a[k]-1"}, l running 1, pending 0, pending 0`)
	p.fail("a[l]", "declined", "do b")
	want(`k succeeded 1 {"id":"a[k]-1"}, l failed 1 declined, running 1, pending 0`)
	p.ok("b", "do c")
	p.ok("c").is("succeeded")
	want(`k succeeded 1 {"id":"a[k]-1"}, l failed 1 declined, succeeded 1 {"id":"b-1"}, succeeded 1 {"id":"c-1"}`)

	sc := new(machine.Scratch).Scope(p.wf, p.s)
	if sc.Run.ID != "o-42" || sc.Run.Key != "k" || !sc.Run.StartedAt.Equal(noon) || string(sc.Vars.JSON()) != `{"x":1}` {
		t.Errorf("the scope has run %+v and variables %s", sc.Run, sc.Vars.JSON())
	}
	if sc.Each != nil || sc.Self != nil || sc.Failure != nil {
		t.Error("the scope has values that expressions of the workflow cannot read")
	}
	p.wait(time.Minute).is("succeeded")
}
