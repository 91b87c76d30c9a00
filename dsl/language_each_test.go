package dsl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// TestForEachTypes: for_each takes a map, or a set of strings, whose keys are not
// sensitive.
func TestForEachTypes(t *testing.T) {
	typed := func(ty, expr string) string {
		return "variable \"v\" { type = " + ty + " }\n" + step("s", "for_each = "+expr)
	}
	const takes = "for_each takes a map, or a set of strings"
	checkRules(t, []rule{
		{"a map", typed("map(string)", "var.v"), nil}, {"a map of objects", typed("map(object({ n = number }))", "var.v"), nil}, {"an object", typed("object({ a = string, b = number })", "var.v"), nil},
		{"a set of strings", typed("set(string)", "var.v"), nil}, {"any", typed("any", "var.v"), nil}, {"a set that is made", typed("list(string)", "toset(var.v)"), nil}, {"a map that is written", step("s", "for_each = { a = 1, b = \"x\" }"), nil},
		{"a map that is made", typed("list(object({ id = string }))", "{ for x in var.v : x.id => x }"), nil}, {"a step with instances", step("a", "for_each = toset([\"k\"])") + step("s", "for_each = step.a"), nil},
		{"a list of strings", typed("list(string)", "var.v"), finds(fails("Invalid for_each", "var.v", takes+", because keys name the instances; this is a list. Use toset(...)."))},
		{"a list of objects", typed("list(object({ id = string }))", "var.v"), finds(fails("Invalid for_each", "var.v", "this is a list. Use { for x in ... : x.id => x }."))},
		{"a list that is written", step("s", "for_each = [\"a\", \"b\"]"), finds(fails("Invalid for_each", `["a", "b"]`, "this is a list. Use toset(...)."))},
		{"an empty list", step("s", "for_each = []"), finds(fails("Invalid for_each", "[]", "this is a list. Use toset(...), or { for x in ... : x.id => x }."))},
		{"a set of numbers", typed("set(number)", "var.v"), finds(fails("Invalid for_each", "var.v", takes+"; this is set of number. Use { for x in ... : x.id => x }."))},
		{"a set of objects", typed("set(object({ id = string }))", "var.v"), finds(fails("Invalid for_each", "var.v", takes+"; this is set of object."))},
		{"a string", typed("string", "var.v"), finds(fails("Invalid for_each", "var.v", takes+"; this is a string."))},
		{"a number", step("s", "for_each = 3"), finds(fails("Invalid for_each", "3", takes+"; this is a number."))},
		{"null", step("s", "for_each = null"), finds(fails("Invalid value for for_each", "null", "a map or a set of strings is required, this is null"))},
		{"a sensitive map", "variable \"v\" {\n type = map(string)\n sensitive = true\n}\n" + step("s", "for_each = var.v"), finds(
			fails("Sensitive for_each", "var.v", "The keys of for_each become names of instances and are shown, so they cannot be sensitive. Use nonsensitive(), or a map with sensitive values only."))},
		{"a map with a sensitive value", "variable \"v\" {\n type = string\n sensitive = true\n}\n" + step("s", "for_each = { a = var.v }"), nil},
		{"an unknown attribute of each.value", typed("map(object({ qty = number }))", "var.v\ninput { value = each.value.qnty }"), finds(fails("Unsupported attribute", ".qnty", `Did you mean "qty"?`))},
		{"an unknown attribute of one kind of object", step("s", "for_each = { a = { qty = 1 }, b = { qty = 2 } }\ninput { value = each.value.qnty }"), finds(fails("Unsupported attribute", ".qnty", `Did you mean "qty"?`))},
		{"attributes of several kinds of objects", step("s", "for_each = { a = { qty = 1 }, b = { n = 2 } }\ninput { value = try(each.value.qty, each.value.n) }"), nil},
		{"a key of a set has no attributes", typed("set(string)", "var.v\ninput { value = each.value.x }"), finds(fails("Unsupported attribute", ".x", "Can't access attributes on a primitive-typed value (string)."))},
		{"limits without it", step("s", "max_parallel = 2\nmax_failures = 1"), finds(
			fails("Argument without for_each", "2", "max_parallel counts instances, so it needs for_each."), fails("Argument without for_each", "1", "max_failures counts instances, so it needs for_each."))},
	})
}

// TestInstancesInRuns: keys are in order, each with its value and its marks.
func TestInstancesInRuns(t *testing.T) {
	for _, tt := range []struct{ name, expr, vars, want string }{
		{"a map", "var.v", `{ b = 1, a = { n = [2] } }`, `a={"n":[2]}[] b=1[]`},
		{"an empty map", "var.v", `{}`, ""},
		{"keys of all kinds", "var.v", `{ "ä b" = 1, "" = 2, "a/b~c" = 3 }`, `=2[] a/b~c=3[] ä b=1[]`},
		{"a set", "toset(var.v)", `["b", "a", "b"]`, `a="a"[] b="b"[]`},
		{"an empty set", "toset(var.v)", `[]`, ""},
		{"numbers of a set", "toset([for n in var.v : tostring(n)])", `[10, 9]`, `10="10"[] 9="9"[]`},
		{"a sensitive value", "{ for k, v in var.v : k => sensitive(v) }", `{ a = "x" }`, `a="x"[""]`},
		{"a part of a value that is sensitive", "{ for k, v in var.v : k => { open = 1, shut = sensitive(v) } }", `{ a = "x" }`, `a={"open":1,"shut":"x"}["/shut"]`},
		{"null values", "var.v", `{ a = null }`, `a=null[]`},
		{"a list", "var.v", `["a"]`, "error: a map or a set of strings is required, this is tuple; use toset(), or { for x in l : x.id => x }"},
		{"null", "var.v", `null`, "error: a map or a set of strings is required, this is null"},
		{"a string", "var.v", `"a"`, "error: a map or a set of strings is required, this is string"},
		{"a set of numbers", "toset(var.v)", `[1]`, "error: a set must hold strings only"},
		{"a sensitive map", "sensitive(var.v)", `{ a = 1 }`, "error: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			def, diags := check(files{"main.hcl": workflow("variable \"v\" {\n type = any\n}\n" + step("s", "for_each = "+tt.expr))})
			part, fails := strings.CutPrefix(tt.want, "error: ")
			if def == nil {
				if !fails {
					t.Error(diags.Err())
				}
				return
			}
			wf := def.Workflow("w")
			each, err := wf.Steps[0].ForEach(scopeOf(bound(t, wf, "v", tt.vars)))
			if fails {
				wantError(t, err, strings.Replace(part, "x in l", "x in ...", 1))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, k := range each.Keys {
				got = append(got, fmt.Sprintf("%s=%s%q", k, each.Values[i].JSON(), each.Values[i].Sensitive()))
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("%s, want %s", text, tt.want)
			}
		})
	}
}

// TestEachInInputs: each.key and each.value are those of the instance.
func TestEachInInputs(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"items\" { type = map(object({ qty = number, tag = optional(string, \"none\") })) }\n"+
		"step \"s\" {\n for_each = var.items\n action = agent.shop.reserve\n input {\n  sku = \"${each.key}-${each.value.tag}\"\n  qty = each.value.qty * 2\n }\n}\n")
	scope := scopeOf(bound(t, wf, "items", `{ mug = { qty = 2 }, tee = { qty = 1, tag = "red" } }`))
	each, err := wf.Steps[0].ForEach(scope)
	if err != nil || len(each.Keys) != 2 {
		t.Fatalf("%v, %v", each.Keys, err)
	}
	for i, want := range []string{`{"qty":4,"sku":"mug-none"}`, `{"qty":2,"sku":"tee-red"}`} {
		scope.Each = &dsl.EachItem{Key: each.Keys[i], Value: each.Values[i]}
		v, err := wf.Steps[0].Input(scope)
		wantValue(t, v, err, want)
	}
	scope.Each = nil
	_, err = wf.Steps[0].Input(scope)
	wantError(t, err, "each has no value here")
}

// TestInstancesOfSteps: step.N of a step with for_each maps each key to its result.
func TestInstancesOfSteps(t *testing.T) {
	many := step("many", "for_each = toset([\"a\"])")
	result := func(list ...dsl.InstanceResult) func(int) dsl.StepResult {
		return func(int) dsl.StepResult { return dsl.StepResult{Each: true, Final: true, Instances: list} }
	}
	a := dsl.InstanceResult{Key: "a", Status: "succeeded", Attempts: 1, Output: document(`{"value":1}`)}
	b := dsl.InstanceResult{Key: "b", Status: "failed", Attempts: 3, ErrorCode: "timeout", ErrorText: "too slow", TimedOut: true}
	for expr, want := range map[string]string{
		`keys(step.many)`:                              `["a","b"]`,
		`step.many["a"].output.value`:                  `1`,
		`step.many["b"].output`:                        `null`,
		`step.many["b"].status`:                        `"failed"`,
		`step.many["b"].attempts`:                      `3`,
		`step.many["b"].error`:                         `{"code":"timeout","data":null,"message":"too slow"}`,
		`step.many["a"].error`:                         `null`,
		`step.many["b"].timed_out`:                     `true`,
		`step.many["a"].started_at`:                    `null`,
		`[for k, s in step.many : "${k}:${s.status}"]`: `["a:succeeded","b:failed"]`,
		`[for s in step.many : s.output.value if s.status == "succeeded"]`: `[1]`,
		`length(step.many)`:                            `2`,
		`step.many[var.k].output.value`:                `1`,
		`step.many["c"].output.value`:                  "error: Invalid index",
		`try(step.many["c"].output.value, "none")`:     `"none"`,
		`contains(keys(step.many), "b")`:               `true`,
		`{ for k, s in step.many : s.status => k... }`: `{"failed":["b"],"succeeded":["a"]}`,
	} {
		wf := linkedWorkflow(t, "variable \"k\" { default = \"a\" }\n"+many+"output \"o\" { value = "+expr+" }\n")
		scope := scopeOf(bound(t, wf))
		scope.Step = result(a, b)
		v, err := wf.Outputs[0].Value(scope)
		if part, fails := strings.CutPrefix(want, "error: "); fails {
			wantError(t, err, part)
			continue
		}
		if err != nil || string(v.JSON()) != want {
			t.Errorf("%s = %s, %v; want %s", expr, v.JSON(), err, want)
		}
		scope.Step = result()
		scope.Memo = &dsl.Memo{}
		if expr == "keys(step.many)" {
			v, err := wf.Outputs[0].Value(scope)
			wantValue(t, v, err, "[]")
		}
	}
}

// TestCodes: a code in on, not_on and catch that the action never answers with is a
// warning, with the code that was probably meant.
func TestCodes(t *testing.T) {
	charge := func(body string) string {
		return "step \"s\" {\n action = agent.shop.charge\n compensation = \"none\"\n input { amount = 1 }\n" + body + "\n}\n"
	}
	const never = "Action shop.charge (shop 1.4.0) does not answer with the code "
	checkRules(t, []rule{
		{"its own codes", charge("retry {\n on = [\"card_declined\"]\n not_on = [\"gateway_busy\"]\n}\ncatch { errors = [\"card_declined\"] }"), nil},
		{"codes of the engine", charge("catch { errors = [\"timeout\", \"agent_lost\", \"internal\", \"bad_reply\", \"unavailable\", \"rate_limited\", \"aborted\", \"invalid\", \"denied\", \"expression_error\", \"precondition_failed\", \"postcondition_failed\", \"deadline_exceeded\", \"cancelled\", \"limit_exceeded\"] }"), nil},
		{"a code of another action", charge("catch { errors = [\"out_of_stock\"] }"), finds(warns("Unknown error code", `"out_of_stock"`, never+`"out_of_stock". Known are "card_declined", "gateway_busy".`))},
		{"a slip", charge("retry { on = [\"card_decline\"] }"), finds(warns("Unknown error code", `"card_decline"`, never+`"card_decline". Did you mean "card_declined"?`))},
		{"a slip in a code of the engine", charge("retry { not_on = [\"time_out\"] }"), finds(warns("Unknown error code", `"time_out"`, `Did you mean "timeout"?`))},
		{"every code, which only catch takes", charge("retry {\n on = [\"*\"]\n not_on = [\"*\"]\n}\ncatch { errors = [\"*\"] }"), finds(
			warns("Unknown error code", `"*"`, never+`"*". Only catch takes it, for every code.`), warns("Unknown error code", `"*"`, `Only catch takes it`))},
		{"each of a list", charge("catch { errors = [\"one_thing\", \"card_declined\", \"other_thing\"] }"), finds(
			warns("Unknown error code", `"one_thing"`, ""), warns("Unknown error code", `"other_thing"`, ""))},
		{"a list from a local value", "locals { l = [\"bananas\"] }\n" + charge("catch { errors = local.l }"), finds(warns("Unknown error code", "local.l", never+`"bananas".`))},
		{"an element that depends on the run", "variable \"c\" { default = \"bananas\" }\n" + charge("catch { errors = [var.c, \"bananas\"] }"), finds(warns("Unknown error code", `"bananas"`, ""))},
		{"a list that depends on the run", "variable \"c\" { default = [\"bananas\"] }\n" + charge("catch { errors = var.c }"), nil},
		{"a code of a condition", charge("precondition {\n condition = true\n error_message = \"x\"\n error_code = \"not_yet\"\n}\ncatch { errors = [\"not_yet\", \"sold_out\"] }"), finds(
			warns("Unknown error code", `"sold_out"`, `Known are "card_declined", "gateway_busy", "not_yet".`))},
		{"a code of a condition that depends on the run", "variable \"c\" { default = \"x\" }\n" + charge("postcondition {\n condition = true\n error_message = \"x\"\n error_code = var.c\n}\ncatch { errors = [\"bananas\"] }"), nil},
		{"an action without codes", "step \"s\" {\n action = agent.shop.recall\n input { booking_id = \"b\" }\n catch { errors = [\"bananas\"] }\n}\n", finds(
			warns("Unknown error code", `"bananas"`, `Action shop.recall (shop 1.4.0) does not answer with the code "bananas".`))},
		{"an action that may answer with any code, none of which is named", step("s", "catch { errors = [\"bananas\"] }"), finds(warns("Unknown error code", `"bananas"`, "Action echo.call (echo 1.0.0) does not answer with"))},
		{"an action that may answer with any code, named in its input", step("s", "input { value = { fail = \"bananas\" } }\ncatch { errors = [\"bananas\", \"apples\"] }"), finds(warns("Unknown error code", `"apples"`, `Known are "bananas".`))},
		{"an action that may answer with any code, with an input that depends on the run", "variable \"c\" { default = 1 }\n" + step("s", "input { value = var.c }\ncatch { errors = [\"bananas\"] }"), nil},
		{"retry of the workflow", "retry { on = [\"out_of_stock\", \"card_declined\"] }\n" + charge(""), finds(warns("Unknown error code", `"out_of_stock"`, `No action of a step answers with the code "out_of_stock".`))},
		{"retry of the workflow, a code of any step", "retry { not_on = [\"out_of_stock\", \"card_declined\"] }\n" + charge("") + "step \"r\" {\n action = agent.shop.reserve\n input { sku = \"a\" }\n}\n", nil},
	})
}
