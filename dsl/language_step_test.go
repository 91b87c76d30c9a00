package dsl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// TestActionsOfSteps: an action is agent.NAME.ACTION, as a reference and not as a string.
func TestActionsOfSteps(t *testing.T) {
	const how = "An action is written agent.NAME.ACTION, without quotes."
	for _, action := range []string{`"agent.echo.call"`, "agent.echo", "agent.echo.call.x", "echo.call", `agent["echo"].call`, `agent.echo["call"]`, "agent.echo.call()", "[agent.echo.call]", "1", "null", "upper(\"x\")"} {
		_, diags := check(files{"main.hcl": workflow("step \"s\" {\n action = " + action + "\n compensation = \"none\"\n}\n")})
		if got := about(diags, "Invalid action"); len(got) != 1 || got[0].Detail != how {
			if action != "agent.echo.call()" { // which is no expression at all
				t.Errorf("%s: %v", action, diags.Err())
			}
		}
	}
	checkRules(t, []rule{
		{"no action", "step \"s\" { compensation = \"none\" }\n", finds(fails("Missing required argument", `step "s"`, "A step needs an action: action = agent.NAME.ACTION. A step that starts a child run has workflow = workflow.NAME. A step without a call has value = ..., timer { ... } or wait { ... }."))},
		{"no action, and something unknown", "step \"s\" {\n acton = agent.echo.call\n}\n", finds(fails("Unsupported argument", "acton", `Did you mean "action"?`))},
		{"an action that does not exist", "step \"s\" {\n action = agent.shop.chrge\n input { x = var.y }\n}\n", finds(
			fails("Unknown action", "agent.shop.chrge", `Agent "shop" (shop 1.4.0) has no action "chrge". Did you mean "charge"?`),
			fails("Reference to undeclared variable", "var.y", ""))},
	})
}

// TestArgumentsOfActions: the input of a step is checked against the schema of its
// action before a run.
func TestArgumentsOfActions(t *testing.T) {
	in := func(action, lines string) string {
		return "step \"s\" {\n action = agent." + action + "\n compensation = \"none\"\n input {\n" + lines + "\n}\n}\n"
	}
	checkRules(t, []rule{
		{"a required one is missing", in("shop.charge", ""), finds(fails("Missing required argument", "input", "Action shop.charge (shop 1.4.0) requires argument \"amount\" (number)."))},
		{"null for a required one", in("shop.charge", "amount = null"), finds(fails("Invalid value for argument", "null", `Argument "amount" of action shop.charge (shop 1.4.0): a value is required, this is null.`))},
		{"null for an optional one", in("shop.charge", "amount = 1\nemail = null\ncurrency = null"), nil},
		{"an unknown one", in("shop.charge", "amount = 1\ncurency = \"eur\""), finds(fails("Unsupported argument", "curency", `Action shop.charge (shop 1.4.0) has no argument "curency". Did you mean "currency"?`))},
		{"an unknown one that is like nothing", in("shop.charge", "amount = 1\nbananas = var.x"), finds(
			fails("Unsupported argument", "bananas", `Action shop.charge (shop 1.4.0) has no argument "bananas".`), fails("Reference to undeclared variable", "var.x", ""))},
		{"a number for a string", in("shop.stock", "sku = 5"), nil},
		{"a list for a string", in("shop.stock", "sku = [\"a\"]"), finds(fails("Invalid value for argument", `["a"]`, "string required, but have tuple"))},
		{"a word for a number", in("shop.charge", "amount = \"ten\""), finds(fails("Invalid value for argument", `"ten"`, "a number is required"))},
		{"a numeral for a number", in("shop.charge", "amount = \"10\""), nil},
		{"outside of the enum", in("shop.charge", "amount = 1\ncurrency = \"gbp\""), finds(fails("Invalid value for argument", `"gbp"`, `it must be one of "eur", "usd"`))},
		{"a number outside of the enum", in("kinds.call", "step = 2"), finds(fails("Invalid value for argument", "2", `it must be one of 1, 2.5`))},
		{"a number in the enum, written otherwise", in("kinds.call", "step = \"2.50\""), nil},
		{"a list with one wrong element", in("kinds.call", "list = [\"a\", [1]]"), finds(fails("Invalid value for argument", `["a", [1]]`, `Argument "list" of action kinds.call (kinds 1.0.0): `))},
		{"an object without a required attribute", in("kinds.call", "row = { n = 1 }"), finds(fails("Invalid value for argument", "{ n = 1 }", `attribute "id" is required`))},
		{"an object with an unknown attribute", in("kinds.call", "row = { id = \"a\", m = 1 }"), finds(fails("Unsupported attribute", "m", `Argument "row" has no attribute "m".`))},
		{"a list of objects", in("kinds.call", "rows = [{ id = \"a\" }, { id = \"b\", n = 2 }]"), nil},
		{"a map of numbers", in("kinds.call", "map = { a = 1, b = \"x\" }"), finds(fails("Invalid value for argument", `{ a = 1, b = "x" }`, "a number is required"))},
		{"anything for any", in("kinds.call", "any = [1, \"a\", { b = null }]"), nil},
		{"a key that does not match its pattern", in("kinds.call", "codes = { \"99\" = \"gone\" }"), finds(fails("Invalid value for argument", `{ "99" = "gone" }`, `"99" does not match [1-5][0-9]{2}`))},
		{"a value that is no code", in("kinds.call", "codes = { \"404\" = \"Not Found\" }"), finds(fails("Invalid value for argument", `{ "404" = "Not Found" }`, `"Not Found" cannot be an error code: want snake_case, and none of the engine's own`))},
		{"a code of the engine", in("kinds.call", "codes = { \"404\" = \"timeout\" }"), finds(fails("Invalid value for argument", `{ "404" = "timeout" }`, `"timeout" cannot be an error code`))},
		{"words that match", in("kinds.call", "words = [\"abc\", \"x\"]\ncodes = { \"404\" = \"gone\" }"), nil},
		{"a word that does not match", in("kinds.call", "words = [\"abc\", \"X\"]"), finds(fails("Invalid value for argument", `["abc", "X"]`, `"X" does not match [a-z]+`))},
		{"a reference of the wrong type", "variable \"l\" { type = list(string) }\n" + in("shop.stock", "sku = var.l"), finds(fails("Invalid value for argument", "var.l", "string required, but have list of string"))},
		{"a reference that may fit", "variable \"s\" { type = string }\n" + in("shop.charge", "amount = var.s"), nil},
		{"a block for an object", in("kinds.call", "row {\n id = \"a\"\n}"), finds(fails(`Unexpected "row" block`, "row", "Blocks are not allowed here. For an argument that is an object write NAME = { ... }."))},
		{"two mistakes", in("shop.charge", "amount = \"x\"\ncurrency = \"y\""), finds(fails("Invalid value for argument", `"x"`, ""), fails("Invalid value for argument", `"y"`, ""))},
	})
}

// TestInputsInRuns: what an action gets: every argument converted to its type, defaults
// filled in, null left out, and sensitive parts marked.
func TestInputsInRuns(t *testing.T) {
	for _, tt := range []struct{ name, action, lines, vars, want, sensitive string }{
		{"defaults", "shop.charge", "amount = var.v", "1", `{"amount":1,"currency":"eur"}`, ""},
		{"null is the default", "shop.charge", "amount = 1\ncurrency = var.v", "null", `{"amount":1,"currency":"eur"}`, ""},
		{"null is left out", "shop.charge", "amount = 1\nemail = var.v", "null", `{"amount":1,"currency":"eur"}`, ""},
		{"converted", "shop.charge", "amount = var.v\nemail = 5", `"7.50"`, `{"amount":7.5,"currency":"eur","email":"5"}`, ""},
		{"not convertible", "shop.charge", "amount = var.v", `"x"`, `error: argument "amount": a number is required`, ""},
		{"null for a required one", "shop.charge", "amount = var.v", "null", `error: argument "amount": a value is required, this is null`, ""},
		{"outside of the enum", "shop.charge", "amount = 1\ncurrency = var.v", `"gbp"`, `error: argument "currency": it must be one of "eur", "usd"`, ""},
		{"in the enum", "shop.charge", "amount = 1\ncurrency = var.v", `"usd"`, `{"amount":1,"currency":"usd"}`, ""},
		{"a set loses its duplicates", "kinds.call", "set = var.v", `["b", "a", "b"]`, `{"set":["a","b"]}`, ""},
		{"a list keeps its order", "kinds.call", "list = var.v", `["b", 1, true]`, `{"list":["b","1","true"]}`, ""},
		{"an object loses what it does not have", "kinds.call", "row = var.v", `{ id = 5, more = 1 }`, `{"row":{"id":"5","n":null}}`, ""},
		{"an object that lacks something", "kinds.call", "row = var.v", `{ n = 5 }`, `error: attribute "id" is required`, ""},
		{"elements of any", "kinds.call", "open = var.v", `[1, "a", null, { b = [] }]`, `{"open":[1,"a",null,{"b":[]}]}`, ""},
		{"a sensitive argument", "kinds.call", "hidden = var.v", `"abc"`, `{"hidden":"abc"}`, "/hidden"},
		{"a sensitive attribute", "kinds.call", "hiding = { name = \"n\", key = var.v }", `"abc"`, `{"hiding":{"key":"abc","name":"n"}}`, "/hiding/key"},
		{"a sensitive attribute below a list", "kinds.call", "hidings = [{ name = \"n\", key = var.v }]", `"abc"`, `{"hidings":[{"key":"abc","name":"n"}]}`, "/hidings"},
		{"keys that do not match", "kinds.call", "codes = var.v", `{ "600" = "gone" }`, `error: argument "codes": "600" does not match [1-5][0-9]{2}`, ""},
		{"codes that are none", "kinds.call", "codes = var.v", `{ "500" = "a b" }`, `error: argument "codes": "a b" cannot be an error code`, ""},
		{"words that match", "kinds.call", "words = var.v", `["a", "bc"]`, `{"words":["a","bc"]}`, ""},
		{"null elements of words", "kinds.call", "words = var.v", `[null, "bc"]`, `{"words":[null,"bc"]}`, ""},
		{"a boolean", "kinds.call", "truth = var.v", `"true"`, `{"truth":true}`, ""},
		{"arguments by name", "kinds.call", "text = var.v\nnumber = 2\nany = var.v", `1`, `{"any":1,"number":2,"text":"1"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wf := linkedWorkflow(t, "variable \"v\" {\n type = any\n}\nstep \"s\" {\n action = agent."+tt.action+"\n compensation = \"none\"\n input {\n"+tt.lines+"\n}\n}\n")
			v, err := wf.Steps[0].Input(scopeOf(bound(t, wf, "v", tt.vars)))
			if part, refused := strings.CutPrefix(tt.want, "error: "); refused {
				wantError(t, err, part)
				wantError(t, err, "main.hcl:1") // in line 10 or 11
				return
			}
			wantValue(t, v, err, tt.want)
			if got := strings.Join(v.Sensitive(), " "); got != tt.sensitive {
				t.Errorf("sensitive %q, want %q", got, tt.sensitive)
			}
		})
	}
}

// TestWhen: a condition of the step is evaluated before for_each, one that mentions each
// for each instance.
func TestWhen(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"on\" {\n type = any\n default = true\n}\n"+step("always", "")+step("whole", "when = var.on\nfor_each = toset([\"a\"])")+
		step("each", "when = each.key == var.on\nfor_each = toset([\"a\"])")+step("value", "for_each = { a = true }\nwhen = each.value"))
	always, whole, each := stepOf(t, wf, "always"), stepOf(t, wf, "whole"), stepOf(t, wf, "each")
	if always.When != nil || always.WhenEach != nil || whole.When == nil || whole.WhenEach != nil || each.When != nil || each.WhenEach == nil || stepOf(t, wf, "value").WhenEach == nil {
		t.Fatal("a condition is at the wrong place")
	}
	for text, want := range map[string]string{"true": "true", "false": "false", `"true"`: "true", `"no"`: "error: main.hcl:15: when: a bool is required", "null": "error: main.hcl:15: when: true or false is required, this is null", "1": "error: main.hcl:15: when: bool required, but have number"} {
		got, err := whole.When(scopeOf(document(`{"on":` + text + `}`)))
		if part, fails := strings.CutPrefix(want, "error: "); fails {
			wantError(t, err, part)
		} else if err != nil || fmt.Sprint(got) != want {
			t.Errorf("when = %s: %t, %v", text, got, err)
		}
	}
	scope := scopeOf(document(`{"on":"a"}`))
	for key, want := range map[string]bool{"a": true, "b": false} {
		scope.Each = &dsl.EachItem{Key: key, Value: document(`"` + key + `"`)}
		if got, err := each.WhenEach(scope); err != nil || got != want {
			t.Errorf("instance %s: %t, %v", key, got, err)
		}
	}
	checkRules(t, []rule{
		{"a number is no condition", step("s", "when = 1"), finds(fails("Invalid value for when", "1", "bool required, but have number"))},
		{"a word that says it", step("s", "when = \"true\""), nil},
		{"a list is no condition", "variable \"l\" { type = list(string) }\n" + step("s", "when = var.l"), finds(fails("Invalid value for when", "var.l", "bool is required, this is list of string"))},
	})
}

// TestUniqueKeys: the key of a run is text that is not empty and not sensitive.
func TestUniqueKeys(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" {\n type = any\n default = null\n}\nunique { key = var.v }\n"+step("s", ""))
	for text, want := range map[string]string{`"a"`: "a", "5": "5", "true": "true", `""`: "error: a key cannot be empty", "null": "error: this is null", `["a"]`: "error: string required"} {
		got, err := wf.UniqueKey(scopeOf(document(`{"v":` + text + `}`)))
		if part, fails := strings.CutPrefix(want, "error: "); fails {
			wantError(t, err, part)
			wantError(t, err, "unique.key: ")
		} else if err != nil || got != want {
			t.Errorf("key %s: %q, %v", text, got, err)
		}
	}
	_, err := wf.UniqueKey(scopeOf(dsl.NewValue([]byte(`{"v":"abcd"}`), []string{"/v"}, nil)))
	wantError(t, err, "a key cannot hold a sensitive value")
	checkRules(t, []rule{
		{"a sensitive key", "variable \"v\" {\n type = string\n sensitive = true\n}\nunique { key = \"k-${var.v}\" }\n" + step("s", ""), finds(
			fails("Sensitive value in key", `"k-${var.v}"`, "unique.key is stored in clear and shown, so it cannot hold a sensitive value."))},
		{"an empty key", "unique { key = \"\" }\n" + step("s", ""), finds(fails("Invalid value for unique.key", `""`, "a key cannot be empty"))},
		{"a key that is a list", "unique { key = [\"a\"] }\n" + step("s", ""), finds(fails("Invalid value for unique.key", `["a"]`, "string required"))},
	})
}

// TestIdempotencyKeys: a business key tells instances apart, and is not sensitive.
func TestIdempotencyKeys(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" {\n type = any\n default = null\n}\n"+step("s", "idempotency_key = var.v")+step("e", "for_each = toset([\"a\"])\nidempotency_key = \"k-${each.key}\"")+step("n", ""))
	if got, err := wf.Steps[0].IdempotencyKey(scopeOf(document(`{"v":"order-7"}`))); err != nil || got != "order-7" {
		t.Errorf("key %q, %v", got, err)
	}
	_, err := wf.Steps[0].IdempotencyKey(scopeOf(document(`{"v":""}`)))
	wantError(t, err, "idempotency_key: a key cannot be empty")
	if got, err := wf.Steps[1].IdempotencyKey(&dsl.Scope{Each: &dsl.EachItem{Key: "a"}}); err != nil || got != "k-a" {
		t.Errorf("key of an instance %q, %v", got, err)
	}
	if wf.Steps[2].IdempotencyKey != nil {
		t.Error("a step without a business key has one")
	}
	checkRules(t, []rule{
		{"one key for all instances", step("s", "for_each = toset([\"a\"])\nidempotency_key = \"fixed\""), finds(
			fails("Key does not tell instances apart", `"fixed"`, "Inside for_each idempotency_key must mention each.key, or all instances would be one call to the far side."))},
		{"a key by value", step("s", "for_each = { a = 1 }\nidempotency_key = \"k-${each.value}\""), finds(fails("Key does not tell instances apart", `"k-${each.value}"`, ""))},
		{"a sensitive key", step("s", "idempotency_key = sensitive(\"x\")"), finds(
			fails("Invalid value for idempotency_key", `sensitive("x")`, "a key cannot hold a sensitive value"),
			fails("Sensitive value in key", `sensitive("x")`, "idempotency_key is stored in clear and shown"))},
	})
}

// TestOutputTypes: output_type says what an output must be where the schema says any.
func TestOutputTypes(t *testing.T) {
	with := func(ty string) string {
		return "step \"s\" {\n action = agent.echo.look\n output_type = " + ty + "\n}\n"
	}
	checkRules(t, []rule{
		{"it is checked before a run", with("object({ value = object({ id = string }) })") + "output \"o\" { value = step.s.output.value.idd }\n", finds(
			fails("Unsupported attribute", ".idd", `Did you mean "id"?`))},
		{"no object", with("list(string)"), finds(fails("Invalid output type", "list(string)", "output_type describes the whole output and is an object({ ... })."))},
		{"an output that does not exist", with("object({ vale = string })"), finds(fails("Unsupported output attribute", "object({ vale = string })", `Action echo.look (echo 1.0.0) has no output "vale". Did you mean "value"?`))},
		{"a type that cannot be", "step \"s\" {\n action = agent.shop.stock\n input { sku = \"a\" }\n output_type = object({ tags = object({ x = string }) })\n}\n", finds(
			fails("Invalid output type", "object({ tags = object({ x = string }) })", `Output "tags" of action shop.stock (shop 1.4.0) is list of string, which cannot become object.`))},
		{"an unknown type", with("object({ value = strin })"), finds(fails("Invalid type specification", "strin", "is not a valid type specification"))},
	})
	wf := linkedWorkflow(t, with("object({ value = object({ id = number, tags = list(string), note = optional(string) }) })"))
	for reply, want := range map[string]string{
		`{"value":{"id":1,"tags":["a"]}}`:                      `{"value":{"id":1,"note":null,"tags":["a"]}}`,
		`{"value":{"id":"1","tags":[],"note":"n","more":[1]}}`: `{"value":{"id":1,"note":"n","tags":[]}}`,
		`{"value":{"id":9007199254740993,"tags":[1]}}`:         `{"value":{"id":9007199254740993,"note":null,"tags":["1"]}}`,
		`{"value":{"tags":[]}}`:                                `error: reply: output_type: attribute "value": attribute "id" is required`,
		`{"value":{"id":"x","tags":[]}}`:                       `error: a number is required`,
		`{"value":null}`:                                       `error: reply: output_type: attribute "value" is null`,
		`{}`:                                                   `error: reply: output_type: attribute "value" is null`,
		`{"value":[]}`:                                         `error: reply: output_type: attribute "value": object required`,
	} {
		v, err := wf.Steps[0].Do.Output([]byte(reply))
		if part, fails := strings.CutPrefix(want, "error: "); fails {
			wantError(t, err, part)
		} else {
			wantValue(t, v, err, want)
		}
	}
	narrow := linkedWorkflow(t, "step \"s\" {\n action = agent.shop.stock\n input { sku = \"a\" }\n output_type = object({ qty = number, tags = set(string) })\n}\n")
	v, err := narrow.Steps[0].Do.Output([]byte(`{"qty":1,"tags":["b","a","b"]}`))
	wantValue(t, v, err, `{"qty":1,"tags":["a","b"]}`)
	_, err = narrow.Steps[0].Do.Output([]byte(`{"qty":1}`)) // optional in the schema, wanted here
	wantError(t, err, `output_type: attribute "tags" is null`)
}

// TestReferencesToOutputs: what a step returns is checked by name before a run, also in
// loops and behind keys of instances.
func TestReferencesToOutputs(t *testing.T) {
	steps := "step \"stock\" {\n action = agent.shop.stock\n input { sku = \"a\" }\n}\nstep \"many\" {\n for_each = toset([\"a\"])\n action = agent.shop.stock\n input { sku = each.key }\n}\n" + step("any", "")
	out := func(expr string) string { return steps + "output \"o\" { value = " + expr + " }\n" }
	outputs := `Action shop.stock (shop 1.4.0) has no output "bananas". Its outputs are "qty", "tags".`
	checkRules(t, []rule{
		{"all that there is", out("[step.stock.output.qty, step.stock.output, step.stock.status, step.stock.attempts, step.stock.error, step.stock.started_at, step.stock.timed_out, step.stock]"), nil},
		{"all of an instance", out("[step.many[\"a\"].output.qty, step.many[\"a\"].status, step.many, length(step.many), [for k, s in step.many : \"${k}${s.output.qty}${s.attempts}\"]]"), nil},
		{"below any", out("step.any.output.value.whatever[0].deep"), nil},
		{"an unknown output", out("step.stock.output.bananas"), finds(fails("Unsupported output attribute", ".bananas", outputs))},
		{"an output that is nearly right", out("step.stock.output.tag"), finds(fails("Unsupported output attribute", ".tag", `Did you mean "tags"?`))},
		{"of an instance", out("step.many[\"a\"].output.bananas"), finds(fails("Unsupported output attribute", ".bananas", outputs))},
		{"in a loop", out("[for s in step.many : s.output.bananas]"), finds(fails("Unsupported output attribute", ".bananas", outputs))},
		{"in a condition of a loop", out("[for s in step.many : 1 if s.output.bananas > 1]"), finds(fails("Unsupported output attribute", ".bananas", outputs))},
		{"as a key of a loop", out("{ for k, s in step.many : s.output.bananas => 1 }"), finds(fails("Unsupported output attribute", ".bananas", outputs))},
		{"a local value's", steps + "locals { l = step.stock.output.bananas }\n", finds(fails("Unsupported output attribute", ".bananas", outputs))},
		{"an attribute of a step", out("step.stock.outputs.qty"), finds(fails("Unsupported attribute", "step.stock.outputs.qty", `A step has no attribute "outputs". Did you mean "output"?`))},
		{"an output without the word", out("step.stock.tags"), finds(fails("Unsupported attribute", "step.stock.tags", `A step has no attribute "tags". Did you mean "status"?`))},
		{"an output without the word that is like nothing", out("step.stock.bananas"), finds(fails("Unsupported attribute", "step.stock.bananas", `A step has no attribute "bananas". Results are under output: step.stock.output.bananas.`))},
		{"an instance's attribute", out("step.many[\"a\"].bananas"), finds(fails("Unsupported attribute", `step.many["a"].bananas`, `A step has no attribute "bananas".`))},
		{"no key", out("step.many.output.qty"), finds(fails("Missing key of step", "step.many.output.qty", `Step "many" has for_each: step.many is a map with one entry a key. Write step.many[KEY].output.`))},
		{"a key too many", out("step.stock[\"a\"].output.qty"), finds(fails("Step without instances", `step.stock["a"].output.qty`, `Step "stock" has no for_each, so it has no key. Write step.stock.output.NAME.`))},
		{"an unknown step", out("step.stok.output.qty"), finds(fails("Reference to undeclared step", "step.stok.output.qty", `There is no step named "stok" in this workflow. Did you mean "stock"?`))},
		{"an attribute of a number", out("step.stock.output.qty.x"), finds(fails("Unsupported attribute", ".x", "Can't access attributes on a primitive-typed value (number)."))},
		{"inside try", out("try(step.any.output.value.x, step.stock.output.qty)"), nil},
		{"error has a code and a message", out("[step.any.error.code, step.any.error.message]"), nil},
		{"error has data", out("step.any.error.data.balance"), nil},
		{"error has nothing else", out("step.any.error.text"), finds(fails("Unsupported attribute", ".text", "It has: code, data, message."))},
	})
}

// TestOutputsOfWorkflows: outputs are evaluated when what they refer to is done, with their
// descriptions. One that holds a sensitive value must say so.
func TestOutputsOfWorkflows(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"pin\" {\n type = string\n sensitive = true\n}\noutput \"b\" {\n value = upper(\"x\")\n description = \"The letter.\"\n}\noutput \"a\" {\n value = var.pin\n sensitive = true\n}\n"+
		"output \"open\" { value = nonsensitive(var.pin) }\noutput \"length\" { value = nonsensitive(length(var.pin)) }\noutput \"all\" {\n value = [1, 2]\n sensitive = true\n}\n"+step("s", ""))
	var got []string
	scope := scopeOf(bound(t, wf, "pin", "4711"))
	for _, o := range wf.Outputs {
		v, err := o.Value(scope)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %q %t %s %q", o.Name, o.Description, o.Sensitive, v.JSON(), v.Sensitive()))
	}
	want := []string{`b "The letter." false "X" []`, `a "" true "4711" [""]`, `open "" false "4711" []`, `length "" false 4 []`, `all "" true [1,2] [""]`}
	if !slices.Equal(got, want) {
		t.Errorf("outputs, in their order\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	hidden := func(expr string) rule {
		return rule{expr, "variable \"pin\" {\n type = string\n sensitive = true\n}\nstep \"one\" {\n action = agent.shop.charge\n compensation = \"none\"\n input { amount = 1 }\n}\n" +
			"step \"many\" {\n for_each = toset([\"a\"])\n action = agent.shop.reserve\n input { sku = each.key }\n}\nlocals { l = [var.pin] }\noutput \"o\" { value = " + expr + " }\n",
			finds(fails("Output holds a sensitive value", expr, `Output "o" shows a sensitive value. Write sensitive = true, or nonsensitive(...) around what may be shown.`))}
	}
	var rules []rule
	for _, expr := range []string{
		"var.pin", `"pin: ${var.pin}"`, "upper(var.pin)", "[1, var.pin]", "{ a = { b = var.pin } }", "length(var.pin)", "var.pin == \"1\"", "var.pin == \"1\" ? 1 : 2", "true ? var.pin : \"\"",
		"[for c in [\"a\"] : var.pin]", "{ for c in [\"a\"] : c => var.pin }", "local.l", "local.l[0]", "jsonencode({ a = var.pin })", "sensitive(1)", "coalesce(var.pin, \"x\")",
		"step.one.output.card", "step.one.output", "step.many[\"a\"].output.token", "[for s in step.many : s.output.token]", "values(step.many)[0].output.token",
	} {
		rules = append(rules, hidden(expr))
	}
	for _, expr := range []string{"nonsensitive(var.pin)", "step.one.output.charge_id", "[for s in step.many : s.output.reservation_id]", "nonsensitive(sensitive(1))", "issensitive(var.pin)"} {
		r := hidden(expr)
		r.want = nil
		rules = append(rules, r)
	}
	checkRules(t, rules)
}

// TestConditions: the check, the message and the code of a condition, with their defaults.
func TestConditions(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" {\n type = any\n default = 1\n}\n"+step("s", `
precondition {
  condition     = var.v == 1
  error_message = "v is ${var.v}"
}
precondition {
  condition     = var.v != 3
  error_message = ["no", "text"][0]
  error_code    = "v_is_${var.v}"
}
postcondition {
  condition     = self.output.value == self.input.value
  error_message = "got ${self.output.value} under ${self.key}"
}
postcondition {
  condition     = !self.timed_out
  error_message = sensitive("hush")
  error_code    = "slow"
}
input { value = 7 }
`))
	s := wf.Steps[0]
	scope := scopeOf(document(`{"v":2}`))
	scope.Self = &dsl.Self{Input: document(`{"value":7}`), Output: document(`{"value":8}`), OutputKnown: true, Key: "k-1"}
	describe := func(c dsl.Condition) string {
		ok, err1 := c.Check(scope)
		message, err2 := c.Message(scope)
		code, err3 := c.Code(scope)
		return fmt.Sprint(ok, " ", message, " ", code, err1, err2, err3)
	}
	for got, want := range map[string]string{
		describe(s.Pre[0]):  "false v is 2 precondition_failed<nil> <nil> <nil>",
		describe(s.Pre[1]):  "true no v_is_2<nil> <nil> <nil>",
		describe(s.Post[0]): "false got 8 under k-1 postcondition_failed<nil> <nil> <nil>",
		describe(s.Post[1]): "true The condition is not met. The message is hidden, because it holds a sensitive value. slow<nil> <nil> <nil>",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	_, err := s.Pre[1].Code(scopeOf(document(`{"v":"A B"}`)))
	wantError(t, err, "error_code: an error code is snake_case, at most 100 characters")
	_, err = s.Pre[1].Code(scopeOf(dsl.NewValue([]byte(`{"v":"abc"}`), []string{"/v"}, nil)))
	wantError(t, err, "error_code: an error code cannot be sensitive")

	for code, ok := range map[string]bool{"a": true, "a_1": true, "_": true, strings.Repeat("a", 100): true, "": false, "1a": false, "A": false, "a-b": false, "a b": false, "ä": false, strings.Repeat("a", 101): false} {
		_, diags := check(files{"main.hcl": workflow(step("s", "precondition {\n condition = true\n error_message = \"x\"\n error_code = \""+code+"\"\n}"))})
		if got := len(about(diags, "Invalid value for error_code")) == 0; got != ok {
			t.Errorf("code %q is taken: %t", code, got)
		}
	}
}

// TestCatch: the codes that a step swallows, and its substitute output.
func TestCatch(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" {\n type = any\n default = null\n}\nstep \"s\" {\n action = agent.shop.charge\n compensation = \"none\"\n input { amount = 1 }\n catch {\n  errors = var.v\n  output = { charge_id = var.v }\n }\n}\n"+
		step("none", "catch { errors = [\"*\"] }")+step("whole", "catch {\n errors = []\n output = var.v\n}"))
	s := wf.Steps[0]
	if codes, err := s.Catch.Errors(scopeOf(document(`{"v":["timeout","card_declined"]}`))); err != nil || strings.Join(codes, " ") != "timeout card_declined" {
		t.Errorf("codes %q, %v", codes, err)
	}
	_, err := s.Catch.Errors(scopeOf(document(`{"v":"timeout"}`)))
	wantError(t, err, "errors: a list of strings is required")
	v, err := s.Catch.Output(scopeOf(document(`{"v":5}`)))
	wantValue(t, v, err, `{"card":null,"charge_id":"5"}`)
	_, err = s.Catch.Output(scopeOf(document(`{"v":[]}`)))
	wantError(t, err, "string required")
	if wf.Steps[1].Catch.Output != nil {
		t.Error("a catch without output has one")
	}
	for text, want := range map[string]string{"null": "null", `{"value":[1]}`: `{"value":[1]}`, "{}": `{"value":null}`, `{"value":1,"more":2}`: `{"value":1}`, `[1]`: "error: an object is required, this is tuple"} {
		v, err := wf.Steps[2].Catch.Output(scopeOf(document(`{"v":` + text + `}`)))
		if part, fails := strings.CutPrefix(want, "error: "); fails {
			wantError(t, err, part)
		} else {
			wantValue(t, v, err, want)
		}
	}
	checkRules(t, []rule{
		{"an output that does not exist", step("s", "catch {\n errors = [\"*\"]\n output = { vale = 1, \"value\" = 2 }\n}"), finds(
			fails("Unsupported output attribute", "vale", `Action echo.call (echo 1.0.0) has no output "vale". Did you mean "value"?`))},
		{"an output of another type", "step \"s\" {\n action = agent.shop.stock\n input { sku = \"a\" }\n catch {\n  errors = [\"*\"]\n  output = { qty = \"many\" }\n }\n}\n", finds(
			fails("Invalid value for output", `{ qty = "many" }`, "a number is required"))},
		{"self.error outside of catch.output", step("s", "catch { errors = [self.error.code] }"), finds(
			fails("Reference not available here", "self.error.code", "self.error can be used only in catch.output."))},
		{"another attribute of self", step("s", "catch {\n errors = [\"*\"]\n output = { value = self.key }\n}"), finds(
			fails("Reference not available here", "self.key", "can be used only inside"))},
		{"an attribute that no error has", step("s", "catch {\n errors = [\"*\"]\n output = { value = self.error.kode }\n}"), finds(
			fails("Unsupported attribute", ".kode", "does not have an attribute"))},
		{"errors that are no list", step("s", "catch { errors = \"*\" }"), finds(fails("Invalid value for errors", `"*"`, "a list of strings is required"))},
	})
}

// TestErrorInCatch: catch.output reads the failure that it replaces, with its data and its marks.
func TestErrorInCatch(t *testing.T) {
	wf := linkedWorkflow(t, step("s", "catch {\n errors = [\"*\"]\n output = { value = \"${self.error.code}: ${self.error.message} ${try(self.error.data.balance, 0)}\" }\n}"))
	for data, want := range map[string]string{"": `{"value":"declined: no money 0"}`, `{"balance":3}`: `{"value":"declined: no money 3"}`} {
		scope := scopeOf(document(`{}`))
		scope.Self = &dsl.Self{ErrorCode: "declined", ErrorText: "no money"}
		if data != "" {
			scope.Self.ErrorData = document(data)
		}
		v, err := wf.Steps[0].Catch.Output(scope)
		wantValue(t, v, err, want)
	}
	scope := scopeOf(document(`{}`))
	scope.Self = &dsl.Self{ErrorCode: "declined", ErrorData: dsl.NewValue([]byte(`{"balance":3}`), []string{"/balance"}, nil)}
	if v, err := wf.Steps[0].Catch.Output(scope); err != nil || len(v.Sensitive()) == 0 {
		t.Errorf("the output is not sensitive: %s, err = %v", v.JSON(), err)
	}
}

// TestStepsThatChangeNothing: a workflow whose steps change nothing is right, and perhaps not
// what was wanted.
func TestStepsThatChangeNothing(t *testing.T) {
	for body, want := range map[string]bool{"": true, "step \"s\" {\n action = agent.echo.look\n}\n": true, step("s", ""): false, "step \"s\" {\n action = agent.echo.call\n read_only = true\n}\n": true} {
		_, diags := check(files{"main.hcl": workflow(body)})
		got := about(diags, "No step changes anything")
		if (len(got) == 1) != want || diags.HasErrors() || want && got[0].Severity != diag.SeverityInfo {
			t.Errorf("%s: %v", body, diags)
		}
	}
}
