package dsl_test

import (
	"strings"
	"testing"
)

// The warning about an output that may be null also covers groups: reads of a group that may be
// skipped, reads of steps around the group by its steps, and reads of parts of an output that a group
// takes from a step that may be skipped.
func TestNullOutputsOfGroups(t *testing.T) {
	const vars = "variable \"on\" { default = true }\nvariable \"off\" { default = false }\n"
	skipped := step("a", "when = var.on")
	out := func(expr string) string { return "output \"o\" { value = " + expr + " }\n" }
	group := func(args, body string) string { return "group \"g\" {\n" + args + "\n" + body + "}\n" }
	inner := func(args string) string { return step("s", args) }
	nullable := func(at, title, why string) []finding {
		name := at[:strings.Index(at, ".output")]
		return finds(warns("Output may be null", at, title+" "+why+"; then its output is null and reading an attribute fails. Use try("+at+", null), or test "+name+".status."))
	}
	const isSkipped, isCaught, tolerates = "is skipped when its condition is false", "has a catch without output", "tolerates failed instances"
	const ref, gref = "step.a.output.value", "group.g.output.x"
	x := inner("") + "output \"x\" { value = step.s.output.value }\n"
	whole := "output \"x\" { value = step.s.output }\n"
	deep := finds(warns("Output may be null", "group.g.output.x.value", `Output "x" of group "g" is the output of step "s". That step `+isSkipped+"; then the output is null and reading an attribute of it fails. Use try(group.g.output.x.value, null)."))
	rules := []rule{
		{"a group that always runs", group("", x) + out(gref), nil},
		{"a group that may be skipped", group("when = var.on", x) + out(gref), nullable(gref, `Group "g"`, isSkipped)},
		{"a group that is caught", group("catch { errors = [\"timeout\"] }", x) + out(gref), nullable(gref, `Group "g"`, isCaught)},
		{"a group that tolerates failures", group("for_each = { k = 1 }\nmax_failures = 1", x) + out("[for g in group.g : g.output.x]"), nullable("g.output.x", `Group "g"`, tolerates)},
		{"a group behind its own condition", group("when = var.on", x) + out("var.on ? "+gref+" : 1"), nil},
		{"a group behind a test of its status", group("when = var.on", x) + out("group.g.status == \"succeeded\" ? "+gref+" : 1"), nil},
		{"a step around the group", skipped + group("", inner("input { value = "+ref+" }")), nullable(ref, `Step "a"`, isSkipped)},
		{"a step around the group, in an output", skipped + group("", inner("")+out(ref)), nullable(ref, `Step "a"`, isSkipped)},
		{"a step around the group, in a local", skipped + group("", "locals { l = "+ref+" }\n"+inner("")), nullable(ref, `Step "a"`, isSkipped)},
		{"a step around the group, in its limit", skipped + group("concurrency { limit = "+ref+" }", inner("")), nullable(ref, `Step "a"`, isSkipped)},
		{"a step around two groups", skipped + group("", "group \"h\" {\n"+inner("input { value = "+ref+" }")+"}\n"), nullable(ref, `Step "a"`, isSkipped)},
		{"a group around two groups", "group \"q\" {\nwhen = var.on\n" + step("b", "") + "output \"x\" { value = step.b.output.value }\n}\n" + group("", inner("input { value = group.q.output.x }")), nullable("group.q.output.x", `Group "q"`, isSkipped)},
		{"a step around a group with the same condition", skipped + group("when = var.on", inner("input { value = "+ref+" }")), nil},
		{"a step around a group with another condition", skipped + group("when = var.off", inner("input { value = "+ref+" }")), nullable(ref, `Step "a"`, isSkipped)},
		{"a step around a group that tests its status", skipped + group("when = step.a.status == \"succeeded\"", "group \"h\" {\n"+inner("input { value = "+ref+" }")+"}\n"), nil},
		{"a step around the group behind a test in it", skipped + group("", inner("input { value = step.a.status == \"succeeded\" ? "+ref+" : 1 }")), nil},
		{"a step around the group, inside try", skipped + group("", inner("input { value = try("+ref+", 1) }")), nil},
		{"instances around the group, by its key", step("a", "for_each = { k = 1 }\nwhen = each.value > 0") + group("for_each = { k = 1 }\nwhen = each.value > 0", inner("input { value = step.a[each.key].output.value }")), nil},
		{"instances around the group, by another key", step("a", "for_each = { k = 1 }\nwhen = each.value > 0") + group("for_each = { j = 1 }\nwhen = each.value > 0", inner("input { value = step.a[each.key].output.value }")), nullable("step.a[each.key].output.value", `Step "a"`, isSkipped)},
		{"a part of an output that may be null", group("", inner("when = var.on")+whole) + out("group.g.output.x.value"), deep},
		{"the whole output that may be null", group("", inner("when = var.on")+whole) + out("group.g.output.x"), nil},
		{"a part of an output that is never null", group("", inner("")+whole) + out("group.g.output.x.value"), nil},
		{"a part of an output, inside try", group("", inner("when = var.on")+whole) + out("try(group.g.output.x.value, 1)"), nil},
		{"a part of an output behind a test of it", group("", inner("when = var.on")+whole) + out("group.g.output.x != null ? group.g.output.x.value : 1"), nil},
		{"a part of an output behind a test of the status", group("", inner("when = var.on")+whole) + out("group.g.status == \"succeeded\" ? group.g.output.x.value : 1"), deep},
	}
	for i := range rules {
		rules[i].body = vars + rules[i].body
	}
	checkRules(t, rules)
}
