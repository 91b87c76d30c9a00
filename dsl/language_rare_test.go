package dsl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/aspects"
)

// TestTooManyAgents: the agents that a module takes from libraries count, too.
func TestTooManyAgents(t *testing.T) {
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "agent \"a%d\" { plugin = \"echo\" }\n", i)
	}
	_, diags := check(files{
		"main.hcl":    "library \"more\" { source = \"./lib\" }\n" + many.String() + workflow("step \"s\" { workflow = library.more.workflow.send }\n"),
		"lib/lib.hcl": "workflow \"send\" {\n  deadline = \"1h\"\n  step \"say\" { action = agent.echo.look }\n}\n",
	})
	want := fails("Too many agents", "library.more.workflow.send", "use more than 10000 agents. Use fewer libraries.")
	if got := about(diags, want.summary); len(got) != 1 || marked(got[0]) != want.at || !strings.Contains(got[0].Detail, want.detail) {
		t.Errorf("%d findings %v, want %s", len(diags), got, want)
	}
}

// TestConditionsThatAreNoCondition: what a condition gives may be known only from the value of a
// variable.
func TestConditionsThatAreNoCondition(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" {\n  default = null\n  validation {\n    condition     = var.v\n    error_message = \"no\"\n  }\n}\n"+step("s", ""))
	_, diags := wf.Bind(given("v", "perhaps"))
	wantFindings(t, diags, fails("Invalid condition", "var.v", "The condition must be true or false: "))
}

// TestRebindOfBrokenVariables: stored variables that are no object are refused, and nothing is lost.
func TestRebindOfBrokenVariables(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" { default = 1 }\n"+step("s", ""))
	if _, diags := aspects.Rebind(wf, dsl.NewValue([]byte(`[1]`), nil, nil)); len(about(diags, "Invalid variables")) != 1 {
		t.Errorf("%v, want one error", diags)
	}
}
