package dsl

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl/rung"
)

// Steps that each depend on all before them have more paths between them than
// could ever be walked: each step is looked at once (T19).
func TestDenseGraph(t *testing.T) {
	for _, pivot := range []bool{false, true} {
		var b strings.Builder
		b.WriteString("workflow \"w\" {\n  deadline = \"1h\"\n")
		var before []string
		for i := range 120 {
			fmt.Fprintf(&b, "  step \"s%d\" {\n    action       = agent.mock.call\n    depends_on   = [%s]\n", i, strings.Join(before, ", "))
			if pivot && i == 60 {
				b.WriteString("    pivot = true\n  }\n")
			} else {
				b.WriteString("    compensation = \"none\"\n    retry { max_attempts = \"unbounded\" }\n  }\n")
			}
			before = append(before, fmt.Sprintf("step.s%d", i))
		}
		b.WriteString("}\n")
		def, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte(b.String())}})
		if def == nil {
			t.Fatalf("diagnostics %.500v", diags.Err())
		}
		wf := def.Workflow("w")
		for i, s := range wf.Steps {
			rungs := wf.AfterUnknown(s, Retry{MaxAttempts: 1})
			if got, want := rungs[len(rungs)-1] == rung.Park, pivot && i >= 60; got != want {
				t.Errorf("pivot %t: step %d is the pivot or later: %t, want %t", pivot, i, got, want)
			}
		}
	}
}
