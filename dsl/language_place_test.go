package dsl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl/diag"
)

// A place is an argument of the language, with what an expression in it may refer to.
type place struct {
	name string
	// file has the expression for %s. Variable s, the local values plain and stepped, and
	// step a exist where the place can see them.
	file string
	sees string // names of referents
}

// referents are what an expression can refer to, as texts. Each is a string, or can
// become one.
var referents = []struct{ name, expr string }{
	{"var", `var.s`},
	{"local", `local.plain`},
	{"local with step", `local.stepped`},
	{"step", `step.a.status`},
	{"each", `each.key`},
	{"self", `self.key`},
	{"failure", `failure.code`},
	{"run", `run.id`},
	{"run.key", `run.key`},
	{"secret", `secret("env:TOKEN")`},
}

const (
	seesFile    = "var, local"
	seesRun     = seesFile + ", run, run.key"
	seesForward = seesRun + ", local with step, step"
)

// inStep is a place in step s, which has for_each and comes after step a.
func inStep(body string) string {
	return inFile("  step \"s\" {\n    action   = agent.echo.call\n    for_each = toset([\"k\"])\n" + body + "\n  }\n")
}

// inUndo is a place in the undo of step s.
func inUndo(body string) string {
	return inStep("    depends_on = [step.a]\n    compensate {\n      action = agent.echo.call\n" + body + "\n    }")
}

func inFile(body string) string {
	return "variable \"s\" { default = \"5s\" }\nlocals { plain = \"5s\" }\nworkflow \"w\" {\n  locals { stepped = step.a.status }\n" +
		step("a", "") + body + "}\n"
}

func places() []place {
	return []place{
		{"a local value of the file", "variable \"s\" { default = \"a\" }\nlocals {\n  plain = 1\n  x = %s\n}\nworkflow \"w\" { deadline = \"1h\" }\n", seesFile},
		{"a validation of the file", "locals { plain = 1 }\nvariable \"s\" {\n  default = \"a\"\n  validation {\n    condition = %s != \"\"\n    error_message = \"x\"\n  }\n}\nworkflow \"w\" { deadline = \"1h\" }\n", seesFile},
		{"config of an agent", "variable \"s\" { default = \"a\" }\nlocals { plain = \"a\" }\nagent \"shop\" {\n  config { region = %s }\n}\nworkflow \"w\" { deadline = \"1h\" }\n", seesFile + ", secret"},
		{"the message of a validation", inFile("  variable \"x\" {\n    default = 1\n    validation {\n      condition = true\n      error_message = %s\n    }\n  }\n"), seesFile},
		{"deadline of the workflow", inFile("  deadline = %s\n"), seesRun},
		{"deadline of compensation", inFile("  compensation { deadline = %s }\n"), seesRun},
		{"retry of the workflow", inFile("  retry { initial_interval = %s }\n"), seesRun},
		{"unique.key", inFile("  unique { key = %s }\n"), seesFile + ", run"},
		{"a local value of the workflow", inFile("  locals { x = %s }\n"), seesForward},
		{"an output", inFile("  output \"o\" { value = %s }\n"), seesForward},
		{"for_each", inFile("  step \"s\" {\n    action = agent.echo.call\n    compensation = \"none\"\n    for_each = toset([%s])\n  }\n"), seesForward},
		{"max_parallel", inStep("    compensation = \"none\"\n    max_parallel = length(%s)"), seesForward},
		{"max_failures", inStep("    compensation = \"none\"\n    max_failures = length(%s)"), seesForward},
		{"priority of a step", inStep("    compensation = \"none\"\n    priority = length(%s)"), seesForward},
		{"timeout", inStep("    compensation = \"none\"\n    timeout = %s"), seesForward},
		{"deadline of a step", inStep("    compensation = \"none\"\n    deadline = %s"), seesForward},
		{"retry of a step", inStep("    compensation = \"none\"\n    retry { max_interval = %s }"), seesForward},
		{"when", inStep("    compensation = \"none\"\n    when = %s != \"\""), seesForward + ", each"},
		{"idempotency_key", inStep("    compensation = \"none\"\n    idempotency_key = \"${each.key}-${%s}\""), seesForward + ", each"},
		{"input", inStep("    compensation = \"none\"\n    input { value = %s }"), seesForward + ", each, secret"},
		{"the condition of a precondition", inStep("    compensation = \"none\"\n    precondition {\n      condition = %s != \"\"\n      error_message = \"x\"\n    }"), seesForward + ", each"},
		{"the message of a precondition", inStep("    compensation = \"none\"\n    precondition {\n      condition = true\n      error_message = %s\n    }"), seesForward + ", each"},
		{"the code of a precondition", inStep("    compensation = \"none\"\n    precondition {\n      condition = true\n      error_message = \"x\"\n      error_code = \"c_${%s}\"\n    }"), seesForward + ", each"},
		{"the condition of a postcondition", inStep("    compensation = \"none\"\n    postcondition {\n      condition = %s != \"\"\n      error_message = \"x\"\n    }"), seesForward + ", each, self"},
		{"the message of a postcondition", inStep("    compensation = \"none\"\n    postcondition {\n      condition = true\n      error_message = %s\n    }"), seesForward + ", each, self"},
		{"the code of a postcondition", inStep("    compensation = \"none\"\n    postcondition {\n      condition = true\n      error_message = \"x\"\n      error_code = \"c_${%s}\"\n    }"), seesForward + ", each, self"},
		{"catch.errors", inStep("    compensation = \"none\"\n    catch { errors = [%s] }"), seesForward + ", each"},
		{"catch.output", inStep("    compensation = \"none\"\n    catch {\n      errors = [\"*\"]\n      output = { value = %s }\n    }"), seesForward + ", each"},
		{"input of an undo", inUndo("      input { value = %s }"), seesForward + ", each, self, failure, secret"},
		{"timeout of an undo", inUndo("      timeout = %s"), seesForward + ", failure"},
		{"deadline of an undo", inUndo("      deadline = %s"), seesForward + ", failure"},
		{"retry of an undo", inUndo("      retry { max_interval = %s }"), seesForward + ", failure"},
	}
}

// TestWhatEachPlaceSees: each argument can refer to what is known when it is evaluated,
// and to nothing else.
func TestWhatEachPlaceSees(t *testing.T) {
	for _, p := range places() {
		t.Run(p.name, func(t *testing.T) {
			sees := strings.Split(p.sees, ", ")
			for _, r := range referents {
				_, diags := check(files{"main.hcl": strings.Replace(p.file, "%s", r.expr, 1)})
				refused := slices.ContainsFunc(diags, func(d diag.Diagnostic) bool {
					return d.Summary == "Reference not available here" || d.Summary == "secret() not allowed here" ||
						d.Summary == "Reference to undeclared local value"
				})
				allowed := slices.Contains(sees, r.name)
				if allowed == refused || allowed && diags.HasErrors() {
					t.Errorf("%s: allowed %t; found: %v", r.name, allowed, diags.Err())
				}
			}
		})
	}
}

// TestReferencesOfOtherPlaces: the message for a reference says where the name can be
// used.
func TestReferencesOfOtherPlaces(t *testing.T) {
	checkRules(t, []rule{
		{"each in a setting of the whole step", step("s", "for_each = toset([\"a\"])\ntimeout = each.value"), finds(
			fails("Reference not available here", "each.value", `"each" can be used only inside a step that has for_each (not in settings of the step as a whole).`))},
		{"each without for_each", step("s", "input { value = each.key }"), finds(
			fails("Reference not available here", "each.key", `"each" can be used only inside a step that has for_each`))},
		{"self in an input", step("s", "input { value = self.key }"), finds(
			fails("Reference not available here", "self.key", `"self" can be used only inside fail_when, postcondition, repeat, compensate and the output of catch, in other arguments of a step with repeat, and in the input of a declared action.`))},
		{"failure in a postcondition", step("s", "postcondition {\n condition = failure.code == \"x\"\n error_message = \"x\"\n}"), finds(
			fails("Reference not available here", "failure.code", `"failure" can be used only inside compensate and notify.`))},
		{"a local value that uses a step in a setting of the workflow", "locals { l = step.s.status }\nunique { key = local.l }\n" + step("s", ""), finds(
			fails("Reference not available here", "local.l", `local.l uses step.s, which is not available here.`))},
		{"the key of the run in its own definition", "unique { key = run.key }\n" + step("s", ""), finds(
			fails("Reference not available here", "run.key", "run.key is the value of unique.key, so it cannot be used in it."))},
		{"an agent is no value", step("s", "input { value = agent.echo.call }"), finds(
			fails("Invalid reference", "agent.echo.call", "An agent's action is not a value; it can stand only in action = agent.NAME.ACTION."))},
		{"a workflow is no value", step("s", "input { value = workflow.w }"), finds(
			fails("Invalid reference", "workflow.w", "A workflow is not a value."))},
		{"a root is no value", step("s", "input { value = [var, run] }"), finds(
			fails("Invalid reference", "var", `"var" is not a value; write var.NAME.`),
			fails("Invalid reference", "run", `"run" is not a value; write run.NAME.`))},
		{"an index with a name is a reference too", "variable \"size\" { default = 1 }\n" + step("s", "input { value = [var[\"size\"], var[\"sizes\"], var[1]] }"), finds(
			fails("Reference to undeclared variable", `var["sizes"]`, `There is no variable named "sizes". Did you mean "size"?`),
			fails("Invalid reference", "var[1]", `"var" is not a value`))},
		{"a word without quotes", step("s", "input { value = production }"), finds(
			fails("Unknown reference", "production", `There is nothing named "production" here. A string is written in quotes: "production".`))},
		{"a root that is misspelled", step("s", "input { value = runn.id }"), finds(
			fails("Unknown reference", "runn.id", `There is nothing named "runn" here. Did you mean "run"?`))},
		{"a name without its root", "variable \"who\" { default = 1 }\nlocals { what = 2 }\n" + step("s", "input { value = [who, what, s] }"), finds(
			fails("Unknown reference", "who", `There is nothing named "who" here. Did you mean "var.who"?`),
			fails("Unknown reference", "what", `There is nothing named "what" here. Did you mean "local.what"?`),
			fails("Unknown reference", "s", `There is nothing named "s" here. Did you mean "step.s"?`))},
		{"attributes of roots", step("s", "for_each = toset([\"a\"])\ninput { value = [each.vlue, run.idd] }\npostcondition {\n condition = self.outptu == 1\n error_message = \"x\"\n}"), finds(
			fails("Unsupported attribute", "each.vlue", `"each" has no attribute "vlue". Did you mean "value"?`),
			fails("Unsupported attribute", "run.idd", `"run" has no attribute "idd". Did you mean "id"?`),
			fails("Unsupported attribute", "self.outptu", `"self" has no attribute "outptu". Did you mean "output"?`))},
	})
}
