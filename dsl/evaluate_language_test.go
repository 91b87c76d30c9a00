package dsl_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// evaluated evaluates an expression in two ways: as one that refers to nothing, which is
// evaluated when the definition is linked, and with its parts in local values and a
// condition that only a run decides. Both must come to the same.
func evaluated(t testing.TB, expr string) (dsl.Value, error) {
	t.Helper()
	_, diags := check(files{"main.hcl": workflow("output \"o\" { value = " + expr + " }\n" + step("a", ""))})
	body := "variable \"known\" { default = true }\nlocals { x = var.known ? [" + expr + "] : [" + expr + "] }\noutput \"o\" { value = local.x[0] }\n" + step("a", "")
	inRun, runErr := evaluatedInRun(t, body)
	if diags.HasErrors() {
		if runErr == nil {
			t.Errorf("%s: linked %v, in a run %s", expr, diags.Err(), inRun.JSON())
		}
		return dsl.Value{}, diags.Err()
	}
	v, err := linkedWorkflow(t, "output \"o\" { value = "+expr+" }\n"+step("a", "")).Outputs[0].Value(&dsl.Scope{})
	if err == nil && runErr == nil && !v.Equal(inRun) || (err == nil) != (runErr == nil) {
		t.Errorf("%s: linked %s, %v; in a run %s, %v", expr, v.JSON(), err, inRun.JSON(), runErr)
	}
	return v, err
}

// evaluatedInRun evaluates output o of a workflow twice.
func evaluatedInRun(t testing.TB, body string, pairs ...string) (dsl.Value, error) {
	t.Helper()
	def, diags := check(files{"main.hcl": workflow(body)})
	if def == nil {
		return dsl.Value{}, diags.Err()
	}
	wf := def.Workflow("w")
	vars := bound(t, wf, pairs...)
	v, err := wf.Outputs[0].Value(scopeOf(vars))
	again, err2 := wf.Outputs[0].Value(scopeOf(vars))
	if !v.Equal(again) || (err == nil) != (err2 == nil) {
		t.Errorf("evaluated twice: %s, %v and %s, %v", v.JSON(), err, again.JSON(), err2)
	}
	return v, err
}

// wantEvaluated compares the JSON of an expression. A want that begins with "error: " is a
// part of its message.
func wantEvaluated(t testing.TB, expr, want string) {
	t.Helper()
	v, err := evaluated(t, expr)
	if part, fails := strings.CutPrefix(want, "error: "); fails {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s = %s, %v; want the error %q", expr, v.JSON(), err, part)
		}
		return
	}
	if err != nil || string(v.JSON()) != want {
		t.Errorf("%s = %s, %v; want %s", expr, v.JSON(), err, want)
	}
}
