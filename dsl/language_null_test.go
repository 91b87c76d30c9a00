package dsl_test

import (
	"strings"
	"testing"
)

// TestNullOutputs: an output that may be null and whose attribute is read without a guard
// is a warning. A test of the status, try and can, and the same condition are guards.
func TestNullOutputs(t *testing.T) {
	const vars = "variable \"on\" { default = true }\nvariable \"off\" { default = false }\n"
	skipped := step("a", "when = var.on")
	caught := step("a", "catch { errors = [\"timeout\"] }")
	substituted := step("a", "catch {\n errors = [\"timeout\"]\n output = { value = 1 }\n}")
	tolerant := step("a", "for_each = { k = 1 }\nmax_failures = 1")
	strict := step("a", "for_each = { k = 1 }")
	both := step("a", "when = var.on\ncatch { errors = [\"timeout\"] }")
	eachWhen := step("a", "for_each = { k = 1 }\nwhen = each.value > 0")
	out := func(expr string) string { return "output \"o\" { value = " + expr + " }\n" }
	read := func(body string) string { return step("s", body) }
	nullable := func(at, why string) []finding {
		name := at[:strings.Index(at, ".output")]
		return finds(warns("Output may be null", at, `Step "a" `+why+"; then its output is null and reading an attribute fails. Use try("+at+", null), or test "+name+".status."))
	}
	const isSkipped, isCaught, tolerates = "is skipped when its condition is false", "has a catch without output", "tolerates failed instances"
	const ref = "step.a.output.value"
	rules := []rule{
		{"never null", step("a", "") + out(ref), nil},
		{"skipped", skipped + out(ref), nullable(ref, isSkipped)},
		{"caught without output", caught + out(ref), nullable(ref, isCaught)},
		{"caught with output", substituted + out(ref), nil},
		{"skipped and caught", both + out(ref), nullable(ref, isSkipped)},
		{"instances that may fail", tolerant + out(`step.a["k"].output.value`), nullable(`step.a["k"].output.value`, tolerates)},
		{"instances that may fail, behind brackets", tolerant + out(`step.a["k"]["output"].value`), finds(warns("Output may be null", `step.a["k"]["output"].value`, `Step "a" `+tolerates))},
		{"a step behind brackets", skipped + out(`step["a"].output["value"]`), finds(warns("Output may be null", `step["a"].output["value"]`, `Step "a" `+isSkipped))},
		{"an instance whose key is the name of an attribute", tolerant + out(`step.a["output"].status`), nil},
		{"an instance in a loop, behind brackets", tolerant + out(`[for s in step["a"] : s["output"]["value"]]`), finds(warns("Output may be null", `s["output"]["value"]`, `Step "a" `+tolerates))},
		{"instances that may not", strict + out(`step.a["k"].output.value`), nil},
		{"instances in a loop", tolerant + out(`[for s in step.a : s.output.value]`), nullable("s.output.value", tolerates)},
		{"instances in a loop with a condition", tolerant + out(`[for s in step.a : s.output.value if s.status == "succeeded"]`), nil},
		{"instances in an object", tolerant + out(`{ for k, s in step.a : k => s.output.value }`), nullable("s.output.value", tolerates)},
		{"a loop over something else", tolerant + out(`[for s in [{ output = { value = 1 } }] : s.output.value]`), nil},
		{"an inner loop hides a variable", tolerant + out(`[for s in step.a : [for s in [{ output = { value = 1 } }] : 1]]`), nil},
		{"the output as a whole", skipped + out("step.a.output"), nil},
		{"the status", skipped + out("step.a.status"), nil},
		{"inside try", skipped + out("try("+ref+", 1)"), nil},
		{"inside can", skipped + out("can("+ref+")"), nil},
		{"coalesce does not help", skipped + out("coalesce("+ref+", 1)"), nullable(ref, isSkipped)},
		{"inside a function in try", skipped + out("try(upper("+ref+"), 1)"), nil},
		{"behind a test of the status", skipped + out("step.a.status == \"succeeded\" ? "+ref+" : 1"), nil},
		{"behind a test of the error", skipped + out("step.a.error == null ? "+ref+" : 1"), nil},
		{"behind a test of the output", skipped + out("step.a.output != null ? "+ref+" : 1"), nil},
		{"behind a test that cannot fail", skipped + out("can(step.a.output.value) ? "+ref+" : 1"), nil},
		{"behind a test of something else", skipped + out("var.on == true ? "+ref+" : 1"), nullable(ref, isSkipped)},
		{"behind a test of another step", skipped + step("b", "") + out("step.b.status == \"succeeded\" ? "+ref+" : 1"), nullable(ref, isSkipped)},
		{"behind a test of its attempts", skipped + out("step.a.attempts > 0 ? "+ref+" : 1"), nullable(ref, isSkipped)},
		{"behind its own condition", skipped + out("var.on ? "+ref+" : 1"), nil},
		{"behind its own condition, laid out otherwise", step("a", "when = var.on&&var.off") + out("var.on  &&  var.off ? "+ref+" : 1"), nil},
		{"behind and", skipped + out("step.a.status == \"succeeded\" && "+ref+" == 1"), nil},
		{"before and", skipped + out(ref+" == 1 && step.a.status == \"succeeded\""), nullable(ref, isSkipped)},
		{"behind or", skipped + out("step.a.output == null || "+ref+" == 1"), nil},
		{"after the condition is closed", skipped + out("[step.a.status == \"x\" ? 1 : 2, "+ref+"]"), nullable(ref, isSkipped)},
		{"after try is closed", skipped + out("[try(step.a.output.x, 1), "+ref+"]"), nullable(ref, isSkipped)},
		{"its own condition does not help where it was caught", both + out("var.on ? "+ref+" : 1"), nullable(ref, isCaught)},
		{"in a local value", skipped + "locals { l = " + ref + " }\n", nullable(ref, isSkipped)},
		{"in an input", skipped + read("input { value = "+ref+" }"), nullable(ref, isSkipped)},
		{"in an input under the same condition", skipped + read("when = var.on\ninput { value = "+ref+" }"), nil},
		{"in an input under another condition", skipped + read("when = var.off\ninput { value = "+ref+" }"), nullable(ref, isSkipped)},
		{"in an input under a test of the status", skipped + read("when = step.a.status == \"succeeded\"\ninput { value = "+ref+" }"), nil},
		{"in the condition itself", skipped + read("when = "+ref+" == 1"), nullable(ref, isSkipped)},
		{"in a setting", skipped + read("timeout = "+ref), nullable(ref, isSkipped)},
		{"in a setting under the same condition", skipped + read("when = var.on\ntimeout = "+ref), nil},
		{"in a precondition", skipped + read("precondition {\n condition = "+ref+" == 1\n error_message = \"x\"\n}"), nullable(ref, isSkipped)},
		{"in an undo", skipped + "step \"s\" {\n action = agent.echo.call\n depends_on = [step.a]\n compensate {\n  action = agent.echo.call\n  input { value = " + ref + " }\n }\n}\n", nullable(ref, isSkipped)},
		{"by the key of the same instance", eachWhen + read("for_each = { k = 1 }\nwhen = each.value > 0\ninput { value = step.a[each.key].output.value }"), nil},
		{"by another key", eachWhen + read("for_each = { k = 1 }\nwhen = each.value > 0\ninput { value = step.a[\"k\"].output.value }"), nullable(`step.a["k"].output.value`, isSkipped)},
		{"by the key of other instances", eachWhen + read("for_each = { k = 2 }\nwhen = each.value > 0\ninput { value = step.a[each.key].output.value }"), nullable(`step.a[each.key].output.value`, isSkipped)},
		{"two reads", skipped + out("["+ref+", step.a.output.value.x]"), append(nullable(ref, isSkipped), nullable("step.a.output.value.x", isSkipped)...)},
	}
	for i := range rules {
		rules[i].body = vars + rules[i].body
	}
	checkRules(t, rules)
}

// TestNullOutputsOfJSON: the warning names the reference also where the source is JSON.
func TestNullOutputsOfJSON(t *testing.T) {
	_, diags := check(files{"main.hcl.json": `{"workflow": {"w": {
  "deadline": "1h", "variable": {"on": {"default": true}},
  "step": {"a": {"action": "agent.echo.call", "compensation": "none", "when": "${var.on}"}},
  "output": {"o": {"value": "${step.a.output.value}"}}
}}}`})
	got := about(diags, "Output may be null")
	if len(got) != 1 || !strings.Contains(got[0].Detail, "Use try(step.a.output.value, null), or test step.a.status.") {
		t.Errorf("findings %v", diags)
	}
}
