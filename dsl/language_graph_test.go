package dsl_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// graphOf writes what each step waits for, by name, in the order in which they run.
func graphOf(wf *dsl.Workflow) string {
	var parts []string
	for _, i := range wf.Order {
		s := wf.Steps[i]
		var after []string
		for _, on := range s.After {
			after = append(after, wf.Steps[on].Name)
		}
		parts = append(parts, s.Name+"("+strings.Join(after, ",")+")")
	}
	return strings.Join(parts, " ")
}

// TestDependencies: a reference to a step makes a dependency, wherever it stands and also
// through local values; there is no other order than that and depends_on.
func TestDependencies(t *testing.T) {
	a, b := step("a", ""), step("b", "")
	for _, tt := range []struct{ name, body, want string }{
		{"none", b + a, "b() a()"},
		{"input", step("s", "input { value = step.a.output.value }") + a, "a() s(a)"},
		{"inside a template", step("s", "input { value = \"${step.a.output.value}!\" }") + a, "a() s(a)"},
		{"as an index", step("s", "input { value = step[\"a\"].output.value }") + a, "a() s(a)"},
		{"the status only", step("s", "input { value = step.a.status }") + a, "a() s(a)"},
		{"inside try", step("s", "input { value = try(step.a.output.x, 1) }") + a, "a() s(a)"},
		{"inside a loop", step("s", "input { value = [for x in [1] : step.a.output.value] }") + a, "a() s(a)"},
		{"when", step("s", "when = step.a.status == \"succeeded\"") + a, "a() s(a)"},
		{"for_each", step("s", "for_each = toset(step.a.output.value)") + a, "a() s(a)"},
		{"max_parallel", step("s", "for_each = {}\nmax_parallel = step.a.output.value") + a, "a() s(a)"},
		{"max_failures", step("s", "for_each = {}\nmax_failures = step.a.output.value") + a, "a() s(a)"},
		{"timeout", step("s", "timeout = step.a.output.value") + a, "a() s(a)"},
		{"deadline", step("s", "deadline = step.a.output.value") + a, "a() s(a)"},
		{"retry", step("s", "retry { max_attempts = step.a.output.value }") + a, "a() s(a)"},
		{"idempotency_key", step("s", "idempotency_key = step.a.output.value") + a, "a() s(a)"},
		{"precondition", step("s", "precondition {\n condition = true\n error_message = step.a.output.value\n}") + a, "a() s(a)"},
		{"postcondition", step("s", "postcondition {\n condition = true\n error_message = \"x\"\n error_code = step.a.output.value\n}") + a, "a() s(a)"},
		{"catch", step("s", "catch {\n errors = [\"*\"]\n output = step.a.output\n}") + a, "a() s(a)"},
		{"catch.errors", step("s", "catch { errors = step.a.output.value }") + a, "a() s(a)"},
		{"heartbeat_timeout", "step \"s\" {\n action = agent.shop.fill\n heartbeat_timeout = step.a.output.value\n}\n" + a, "a() s(a)"},
		{"depends_on", step("s", "depends_on = [step.a, step.b]") + a + b, "a() b() s(a,b)"},
		{"twice the same", step("s", "depends_on = [step.a, step.a]\ninput { value = [step.a.output, step.a.status] }") + a, "a() s(a)"},
		{"a local value", "locals { l = step.a.output.value }\n" + step("s", "input { value = local.l }") + a, "a() s(a)"},
		{"a local value of a local value", "locals {\n l = \"${local.m}\"\n m = [step.a.output.value, step.b.status]\n}\n" + step("s", "input { value = local.l }") + a + b, "a() b() s(a,b)"},
		{"a local value that nothing uses", "locals { l = step.a.output.value }\n" + step("s", "") + a, "s() a()"},
		{"a local value without steps", "locals { l = 1 }\n" + step("s", "input { value = local.l }") + a, "s() a()"},
		{"an output makes none", a + b + "output \"o\" { value = [step.b.output, step.a.output] }\n", "a() b()"},
		{"an undo makes none", "step \"s\" {\n action = agent.echo.call\n depends_on = [step.a]\n compensate {\n  action = agent.echo.call\n  input { value = step.a.output.value }\n }\n}\n" + a + b, "a() s(a) b()"},
		{"ready steps in order of declaration", step("z", "") + step("y", "depends_on = [step.z]") + step("x", "") + step("w", "depends_on = [step.x]") + a, "z() y(z) x() w(x) a()"},
		{"a diamond", step("d", "depends_on = [step.b, step.c]") + step("c", "depends_on = [step.a]") + step("b", "depends_on = [step.a]") + a, "a() c(a) b(a) d(c,b)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wf := linkedWorkflow(t, tt.body)
			if got := graphOf(wf); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			for _, s := range wf.Steps {
				for _, on := range s.After {
					if !slices.Contains(wf.Steps[on].Before, s.Index) {
						t.Errorf("%s waits for %s, which does not know it", s.Name, wf.Steps[on].Name)
					}
				}
				if !slices.IsSorted(s.After) || !slices.IsSorted(s.Before) {
					t.Errorf("%s: after %v, before %v", s.Name, s.After, s.Before)
				}
			}
		})
	}
}

// TestDependsOn: depends_on is a list of whole steps.
func TestDependsOn(t *testing.T) {
	a := step("a", "")
	const list, whole = "depends_on is a list of steps: depends_on = [step.NAME].", "depends_on takes whole steps only: write step.NAME, without a key or an output."
	checkRules(t, []rule{
		{"none", step("s", "depends_on = []") + a, nil},
		{"a step without the brackets", step("s", "depends_on = step.a") + a, finds(fails("Invalid depends_on", "step.a", list))},
		{"a string", step("s", "depends_on = [\"a\", \"step.a\"]") + a, finds(fails("Invalid depends_on", `"a"`, list), fails("Invalid depends_on", `"step.a"`, list))},
		{"a variable", "variable \"v\" { default = 1 }\n" + step("s", "depends_on = [var.v]") + a, finds(fails("Invalid depends_on", "var.v", list))},
		{"an output", step("s", "depends_on = [step.a.output]") + a, finds(fails("Invalid depends_on", "step.a.output", whole))},
		{"an instance", step("s", "depends_on = [step.a[\"k\"]]") + a, finds(fails("Invalid depends_on", `step.a["k"]`, whole))},
		{"an index", step("s", "depends_on = [step[\"a\"]]") + a, finds(fails("Invalid depends_on", `step["a"]`, whole))},
		{"step alone", step("s", "depends_on = [step]") + a, finds(fails("Invalid depends_on", "step", list))},
		{"an unknown step", step("s", "depends_on = [step.aa]") + a, finds(fails("Reference to undeclared step", "step.aa", `There is no step named "aa" in this workflow. Did you mean "a"?`))},
		{"itself", step("s", "depends_on = [step.s]"), finds(fails("Step refers to itself", "step.s", `Step "s" cannot depend on itself.`))},
		{"what it refers to itself", step("s", "input { value = step.s.output.value }"), finds(
			fails("Step refers to itself", "step.s.output.value", `Step "s" cannot use its own result here. In fail_when, postcondition and compensate it is self.output.`))},
		{"itself through a local value", "locals { l = step.s.output.value }\n" + step("s", "input { value = local.l }"), finds(
			fails("Step refers to itself", "local.l", `Step "s" cannot use its own result here.`))},
	})
}

// TestCycles: steps, or local values, that wait for each other are an error that names the
// cycle and the places that make it.
func TestCycles(t *testing.T) {
	checkRules(t, []rule{
		{"of two", step("a", "depends_on = [step.b]") + step("b", "depends_on = [step.a]"), finds(
			fails("Cycle in steps", "step.b", "Steps wait for each other: \"a\" → \"b\" → \"a\".\n\"a\" waits for \"b\" (main.hcl:6), \"b\" waits for \"a\" (main.hcl:11)."))},
		{"behind a step that is free", step("z", "") + step("x", "depends_on = [step.a, step.z]") + step("a", "depends_on = [step.b]") + step("b", "depends_on = [step.c]") + step("c", "depends_on = [step.a]"), finds(
			fails("Cycle in steps", "step.c", "Steps wait for each other: \"b\" → \"a\" → \"c\" → \"b\"."))},
		{"through an output", step("a", "input { value = step.b.output.value }") + step("b", "when = step.a.status == \"x\""), finds(
			fails("Cycle in steps", "step.b.output.value", "\"a\" waits for \"b\""),
			warns("Output may be null", "step.b.output.value", ""))},
		{"through a local value", "locals { l = step.b.status }\n" + step("a", "input { value = local.l }") + step("b", "depends_on = [step.a]"), finds(
			fails("Cycle in steps", "local.l", "\"a\" waits for \"b\" (main.hcl:7), \"b\" waits for \"a\" (main.hcl:12)."))},
		{"of local values", "locals {\n a = local.b\n b = local.c\n c = local.a\n}\n" + step("s", ""), finds(
			fails("Cycle in local values", "a", "Local values depend on each other: local.a → local.b → local.c → local.a."))},
		{"of a local value and itself", "locals { a = \"${local.a}x\" }\n" + step("s", ""), finds(fails("Cycle in local values", "a", "Local values depend on each other: local.a → local.a."))},
		{"beside it, what is right", "locals {\n a = local.a\n b = 1\n}\n" + step("s", "input { value = local.b }") + step("r", "input { value = local.nope }"), finds(
			fails("Cycle in local values", "a", ""), fails("Reference to undeclared local value", "local.nope", `There is no local value named "nope".`))},
	})
}

// TestRandomGraphs: whatever the dependencies are, the order is one in which they are
// kept, and a cycle is reported if and only if there is one.
func TestRandomGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		n := 2 + r.IntN(7)
		after := make([][]int, n)
		var body strings.Builder
		for i := range n {
			var refs []string
			for j := range n {
				if i != j && r.IntN(5) == 0 && (j < i || r.IntN(8) == 0) {
					after[i] = append(after[i], j)
					refs = append(refs, fmt.Sprintf("step.s%d", j))
				}
			}
			body.WriteString(step(fmt.Sprintf("s%d", i), "depends_on = ["+strings.Join(refs, ", ")+"]"))
		}
		def, diags := check(files{"main.hcl": workflow(body.String())})
		if cyclic(after) {
			if len(about(diags, "Cycle in steps")) != 1 || def != nil {
				t.Errorf("after %v: the cycle is not reported: %v", after, diags)
			}
			continue
		}
		if def == nil {
			t.Errorf("after %v: %v", after, diags.Err())
			continue
		}
		wf := def.Workflow("w")
		place := make([]int, n)
		for k, i := range wf.Order {
			place[i] = k
		}
		if len(wf.Order) != n {
			t.Errorf("after %v: order %v", after, wf.Order)
		}
		for i, s := range wf.Steps {
			if !slices.Equal(s.After, after[i]) {
				t.Errorf("step %d waits for %v, want %v", i, s.After, after[i])
			}
			for _, on := range s.After {
				if place[on] >= place[i] {
					t.Errorf("after %v: order %v", after, wf.Order)
				}
			}
		}
	}
}

// cyclic reports whether a graph has a cycle: it removes what waits for nothing until
// nothing is left.
func cyclic(after [][]int) bool {
	gone := map[int]bool{}
	for {
		before := len(gone)
		for i, on := range after {
			if !gone[i] && !slices.ContainsFunc(on, func(j int) bool { return !gone[j] }) {
				gone[i] = true
			}
		}
		if len(gone) == len(after) {
			return false
		}
		if len(gone) == before {
			return true
		}
	}
}

// TestPivots: at most one step is the point of no return. It waits for every step that
// does not depend on it.
func TestPivots(t *testing.T) {
	pivot := func(body string) string {
		return "step \"go\" {\n action = agent.echo.call\n pivot = true\n" + body + "\n}\n"
	}
	later := func(name, body string) string {
		return step(name, "depends_on = [step.go]\nretry { max_attempts = \"unbounded\" }\n"+body)
	}
	for _, tt := range []struct{ name, body, want string }{
		{"alone", pivot(""), "go()"},
		{"it waits for all others", step("a", "") + pivot("") + step("b", "depends_on = [step.a]") + step("c", ""), "a() b(a) c() go(b,c)"},
		{"not for those that wait for it", pivot("") + later("z", "") + later("y", "input { value = step.z.output.value }") + step("a", ""), "a() go(a) z(go) y(go,z)"},
		{"a dependency of its own", step("a", "") + step("b", "") + pivot("input { value = step.a.output.value }"), "a() b() go(a,b)"},
	} {
		wf := linkedWorkflow(t, tt.body)
		if got := graphOf(wf); got != tt.want || !stepOf(t, wf, "go").Pivot || wf.Steps[wf.Pivot].Name != "go" {
			t.Errorf("%s: %s, want %s; pivot %d", tt.name, got, tt.want, wf.Pivot)
		}
	}
	if got := linkedWorkflow(t, step("a", "")).Pivot; got != -1 {
		t.Errorf("a workflow without pivot has the pivot %d", got)
	}
	const cannot = "The pivot is one call that succeeds or not, so it cannot have "
	const must = `After the pivot "go" nothing is undone. Step "z" must be read-only, have catch { errors = ["*"] }, or be an idempotent action with retry { max_attempts = "unbounded" } and no deadline.`
	const anyOf = "variable \"x\" { default = true }\nvariable \"c\" { default = \"a\" }\nlocals { all = [\"*\"] }\n"
	z := func(action, body string) string {
		return pivot("") + "step \"z\" {\n action = agent." + action + "\n depends_on = [step.go]\n" + body + "\n}\n"
	}
	tooLate := func(detail string) []finding {
		return finds(fails("Step after the pivot can fail", `step "z"`, must+detail))
	}
	checkRules(t, []rule{
		{"two", pivot("") + "step \"b\" {\n action = agent.echo.call\n pivot = true\n depends_on = [step.go]\n retry { max_attempts = \"unbounded\" }\n}\n", finds(
			fails("More than one pivot", "true", `Step "go" is the pivot already. A workflow has one point of no return at most.`))},
		{"with for_each", pivot("for_each = toset([\"a\"])"), finds(fails("Not allowed on a pivot", `toset(["a"])`, cannot+"for_each."))},
		{"with catch", pivot("catch { errors = [\"*\"] }"), finds(fails("Not allowed on a pivot", "catch", cannot+"catch."))},
		{"with a postcondition", pivot("postcondition {\n condition = true\n error_message = \"x\"\n}"), finds(fails("Not allowed on a pivot", "postcondition", cannot+"postcondition."))},
		{"with a precondition", pivot("precondition {\n condition = true\n error_message = \"x\"\n}"), nil},
		{"with an undo", pivot("compensate { action = agent.echo.call }"), finds(
			fails("Not allowed on a pivot", "compensate", "A pivot that failed has done nothing, and once it has succeeded nothing is undone, so compensate can never run. Remove it, or remove pivot = true."))},
		{"a step after it that is repeated without bound", z("echo.call", "retry { max_attempts = \"unbounded\" }"), nil},
		{"a step after it that is caught", z("echo.once", "catch { errors = [\"*\"] }"), nil},
		{"a step after it that is caught for one code", z("echo.call", "catch { errors = [\"timeout\"] }"), tooLate("")},
		{"a step after it that may be caught", anyOf + z("echo.call", "catch { errors = [var.x ? \"*\" : \"a\"] }"), tooLate("")},
		{"a step after it that catches everything and one more code", anyOf + z("echo.call", "catch { errors = [var.c, \"*\"] }"), nil},
		{"a step after it that is caught through a local", anyOf + z("echo.call", "catch { errors = local.all }"), nil},
		{"a step after it that is caught by a constant condition", anyOf + z("echo.call", "catch { errors = [true ? \"*\" : \"a\"] }"), nil},
		{"a step after it whose list of codes only mentions all", anyOf + z("echo.call", "catch { errors = [replace(\"*\", \"*\", \"a\")] }"), tooLate("")},
		{"instances after it that are caught", anyOf + z("echo.call", "for_each = { k = \"a\" }\ncatch { errors = [each.value, \"*\"] }"), nil},
		{"instances after it that may be caught", anyOf + z("echo.call", "for_each = { k = \"*\" }\ncatch { errors = [each.value] }"), tooLate("")},
		{"a step after it that reads", z("echo.look", ""), nil},
		{"a step after it with attempts", z("echo.call", "retry { max_attempts = 100 }"), tooLate("")},
		{"a step after it that is not idempotent", z("echo.once", "retry { max_attempts = \"unbounded\" }"), append(
			tooLate(" echo.once is not idempotent, so it cannot be repeated without end."),
			warns("Unknown outcomes are not repeated", `"unbounded"`, "echo.once is not idempotent"))},
		{"a step after it with a promise", z("echo.once", "idempotent = true\nretry { max_attempts = \"unbounded\" }"), nil},
		{"a step after it with a deadline", z("echo.call", "deadline = \"1h\"\nretry { max_attempts = \"unbounded\" }"), tooLate(" Its deadline would make it fail.")},
		{"a step far after it", pivot("") + later("y", "") + "step \"z\" {\n action = agent.echo.call\n depends_on = [step.y]\n}\n", tooLate("")},
		{"a step before it", step("z", "deadline = \"1h\"") + pivot(""), nil},
		{"attempts that depend on the run", "variable \"n\" { default = 3 }\n" + z("echo.call", "retry { max_attempts = var.n }"), tooLate("")},
		{"attempts of the workflow", "retry { max_attempts = \"unbounded\" }\n" + z("echo.call", ""), nil},
	})
}

// TestOutputsKnowTheirSteps: an output names the steps that it reads, also through locals and in
// the order of the workflow.
func TestOutputsKnowTheirSteps(t *testing.T) {
	wf := linkedWorkflow(t, `
locals { both = "${step.b.output.value}${step.a.output.value}" }
output "none" { value = 1 }
output "one" { value = step.b.status }
output "two" { value = local.both }
`+step("a", "")+step("b", ""))
	for i, want := range []string{"[]", "[1]", "[0 1]"} {
		if got := fmt.Sprint(wf.Outputs[i].After); got != want {
			t.Errorf("output %s reads steps %s, want %s", wf.Outputs[i].Name, got, want)
		}
	}
}
