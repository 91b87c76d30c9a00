package dsl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/secret"
)

// evalText evaluates an expression as the output of a workflow.
func evalText(t testing.TB, expr string) (Value, error) {
	t.Helper()
	wf := linked(t, fmt.Sprintf("workflow \"w\" {\n  deadline = \"1h\"\n  variable \"v\" {\n    type    = any\n    default = null\n  }\n  output \"o\" { value = %s }\n}\n", expr)).Workflow("w")
	return wf.Outputs[0].Value(&Scope{Vars: bindAll(t, wf), Memo: &Memo{}})
}

// TestNumbersAreExact: integers beyond 2^53 survive, fractions behave as
// decimals, and what has more than 1,000 digits is an error.
func TestNumbersAreExact(t *testing.T) {
	long := strings.Repeat("1234567890", 99) // 990 digits
	for _, tt := range []struct{ name, expr, want string }{
		{"beyond 2^53", "9007199254740993", "9007199254740993"},
		{"sum", "9007199254740993 + 1", "9007199254740994"},
		{"decimal sum", "0.1 + 0.2", "0.3"},
		{"third", "floor(1 / 3 * 3000000) / 1000000", "1"},
		{"money", "7.5 * 2 + 19.99", "34.99"},
		{"small", "0.000000000000000000001", "0.000000000000000000001"},
		{"exponent", "1e30", "1000000000000000000000000000000"},
		{"negative", "-1.50", "-1.5"},
		{"zero", "0 * -1", "0"},
		{"long integer", long, long},
		{"long fraction", "0." + long, "0." + strings.TrimRight(long, "0")},
		{"json", `jsondecode("{\"n\": 12345678901234567890123456789}").n`, "12345678901234567890123456789"},
		{"to json", `jsonencode({ n = 0.1 + 0.2, s = "<&>" })`, `"{\"n\":0.3,\"s\":\"<&>\"}"`},
		{"mixed list", `["a", 1, true, null]`, `["a",1,true,null]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := evalText(t, tt.expr)
			if err != nil || string(v.JSON()) != tt.want {
				t.Errorf("%s, %v; want %s", v.JSON(), err, tt.want)
			}
		})
	}
	for _, expr := range []string{"1e999 * 1e999", "1 / 0", "pow(10, 5000)"} {
		if v, err := evalText(t, "coalesce(var.v, 1) * ("+strings.Replace(expr, "1 / 0", "1 / (coalesce(var.v, 1) - 1)", 1)+")"); err == nil {
			t.Errorf("%s gave %s", expr, v.JSON()[:20])
		}
	}
}

// TestShortCircuit pins a property of the library that the examples rely on.
func TestShortCircuit(t *testing.T) {
	for expr, want := range map[string]string{
		`var.v == null || var.v.x == 1`:              "true",
		`var.v != null && var.v.x == 1`:              "false",
		`var.v == null ? "none" : tostring(var.v.x)`: `"none"`,
	} {
		if v, err := evalText(t, expr); err != nil || string(v.JSON()) != want {
			t.Errorf("%s = %s, %v; want %s", expr, v.JSON(), err, want)
		}
	}
}

// TestExpressionErrors: what cannot be evaluated is an error with a place.
func TestExpressionErrors(t *testing.T) {
	for _, tt := range []struct{ name, expr, want string }{
		{"attribute of null", "var.v.x", "null value"},
		{"index", `[1, 2][coalesce(var.v, 5)]`, "main.hcl:7"},
		{"function", `parseint(coalesce(var.v, "zz"), 10)`, "Invalid function argument"},
		{"too large", `[for s in [format("%-999s", coalesce(var.v, "a"))] : [for i in range(1000) : [for j in range(20) : s]]]`, "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := evalText(t, tt.expr)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

const secretText = `
agent "payment" {
  plugin = "stripe"
  config {
    api_key = secret("env:STRIPE_KEY")
    region  = "eu"
  }
}
workflow "w" {
  deadline = "1h"
  variable "id" { type = string }
  variable "pin" {
    type      = string
    sensitive = true
  }
  step "call" {
    action = agent.http.post
    input {
      url     = "http://localhost/${var.id}"
      headers = { Authorization = "Bearer ${secret("env:TOKEN")}:${var.id}", Plain = "x" }
      json    = { list = [secret("file:/run/key"), "b"], "a/b~c" = (secret("env:A")), pin = var.pin }
    }
    compensate {
      action = agent.http.post
      input {
        url     = self.input.url
        headers = self.input.headers
      }
    }
  }
  step "charge" {
    depends_on   = [step.call]
    action       = agent.payment.charge
    compensation = "none"
    input { amount = 1 }
  }
}`

// TestSecrets: references travel beside the JSON, and only the caller's
// lookup turns them into text.
func TestSecrets(t *testing.T) {
	wf := linked(t, secretText).Workflow("w")
	scope := &Scope{Vars: bindAll(t, wf, "id", "7", "pin", "12345")}
	in, err := wf.Steps[0].Input(scope)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"headers":{"Authorization":null,"Plain":"x"},"json":{"a/b~c":null,"list":[null,"b"],"pin":"12345"},"url":"http://localhost/7"}`
	if string(in.JSON()) != want {
		t.Errorf("input %s", in.JSON())
	}
	wantSecrets := "[{/headers/Authorization [{Bearer  } { env:TOKEN} {:7 }]} {/json/a~1b~0c [{ env:A}]} {/json/list/0 [{ file:/run/key}]}]"
	if got := fmt.Sprint(in.Secrets()); got != wantSecrets {
		t.Errorf("secrets %s\nwant    %s", got, wantSecrets)
	}
	if got := strings.Join(in.SensitiveStrings(), ","); got != "12345" {
		t.Errorf("sensitive strings %q", got)
	}
	lookup := func(ref string) (string, error) { return "<" + ref + `>"&`, nil }
	full, err := secret.Resolve(in, lookup)
	want = `{"headers":{"Authorization":"Bearer <env:TOKEN>\"&:7","Plain":"x"},"json":{"a/b~c":"<env:A>\"&","list":["<file:/run/key>\"&","b"],"pin":"12345"},"url":"http://localhost/7"}`
	if err != nil || string(full) != want {
		t.Errorf("resolved %s, %v", full, err)
	}
	boom := errors.New("not set")
	if _, err := secret.Resolve(in, func(string) (string, error) { return "", boom }); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	config, err := wf.Agents["payment"].Config(scope)
	if err != nil || fmt.Sprint(config.Secrets()) != "[{/api_key [{ env:STRIPE_KEY}]}]" {
		t.Errorf("config %s %v, %v", config.JSON(), config.Secrets(), err)
	}

	// An undo may pass on the secrets of the input, as references.
	scope.Self = &Self{Input: in}
	scope.Failure = &Failure{}
	undo, err := wf.Steps[0].Undo.Input(scope)
	if err != nil || len(undo.Secrets()) != 1 || undo.Secrets()[0].Parts[1].Ref != "env:TOKEN" {
		t.Errorf("undo %s %v, %v", undo.JSON(), undo.Secrets(), err)
	}
}

// TestSecretsCannotBeForged: no text of a user becomes a reference, and what
// computes with a secret is refused.
func TestSecretsCannotBeForged(t *testing.T) {
	wf := linked(t, secretText).Workflow("w")
	for _, id := range []string{`secret("env:X")`, `${secret("env:X")}`, value.Placeholder, `{"ref":"env:X"}`} {
		in, err := wf.Steps[0].Input(&Scope{Vars: bindAll(t, wf, "id", id, "pin", id)})
		if err != nil {
			t.Fatal(err)
		}
		refs := 0
		for _, s := range in.Secrets() {
			for _, p := range s.Parts {
				if p.Ref != "" {
					refs++
				}
			}
		}
		if refs != 3 {
			t.Errorf("%q made %d references", id, refs)
		}
	}
	v := value.SecretValue([]SecretPart{{Ref: "env:X"}})
	for name, bad := range map[string]cty.Value{
		"changed":  cty.StringVal("x").WithSameMarks(v),
		"counted":  cty.NumberIntVal(3).WithSameMarks(v),
		"in a set": cty.SetVal([]cty.Value{v}),
	} {
		if out, err := value.Encode(bad, true); err == nil {
			t.Errorf("%s: encoded as %s %v", name, out.JSON(), out.Secrets())
		}
	}
	if _, err := value.Encode(v, false); err == nil {
		t.Error("a secret was encoded where none is allowed")
	}
}

// TestSensitiveFlow: marks go through expressions into inputs and back out of
// replies, and errors do not show what is marked.
func TestSensitiveFlow(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  variable "pin" {
    type      = string
    sensitive = true
  }
  locals { both = { pin = "p-${var.pin}", open = "x" } }
  step "a" {
    action       = agent.mock.call
    compensation = "none"
    input { value = { deep = [local.both, sensitive(5)], n = parseint(var.pin, 10) } }
  }
  step "charge" {
    action       = agent.payment.charge
    compensation = "none"
    input { amount = 1 }
  }
  output "all" {
    value     = step.charge.output
    sensitive = true
  }
  output "id" { value = step.charge.output.charge_id }
}`).Workflow("w")
	in, err := wf.Steps[0].Input(&Scope{Vars: bindAll(t, wf, "pin", "4711")})
	if err != nil || string(in.JSON()) != `{"value":{"deep":[{"open":"x","pin":"p-4711"},5],"n":4711}}` {
		t.Fatalf("input %s, %v", in.JSON(), err)
	}
	if got := strings.Join(in.Sensitive(), " "); got != "/value/deep/0/pin /value/deep/1 /value/n" {
		t.Errorf("sensitive %s", got)
	}
	if got := strings.Join(in.SensitiveStrings(), " "); got != "p-4711 4711" {
		t.Errorf("sensitive strings %q", got)
	}
	_, err = wf.Steps[0].Input(&Scope{Vars: bindAll(t, wf, "pin", "hunter2")})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error shows a sensitive value, or is none: %v", err)
	}
	out, err := wf.Steps[1].Do.Output([]byte(`{"card":"4242424242424242","charge_id":"c"}`))
	if err != nil || strings.Join(out.Sensitive(), " ") != "/card" {
		t.Errorf("reply %s %v, %v", out.JSON(), out.Sensitive(), err)
	}
	scope := &Scope{Step: func(int) StepResult { return StepResult{One: InstanceResult{Output: out}} }}
	all, err := wf.Outputs[0].Value(scope)
	if err != nil || fmt.Sprint(all.Sensitive()) != "[]" && fmt.Sprint(all.Sensitive()) != "[ ]" && all.Sensitive()[0] != "" {
		t.Errorf("output %s %q, %v", all.JSON(), all.Sensitive(), err)
	}
	if id, err := wf.Outputs[1].Value(scope); err != nil || len(id.Sensitive()) != 0 {
		t.Errorf("output %s %q, %v", id.JSON(), id.Sensitive(), err)
	}
}

// TestReplies: only a reply that fits the schema is a result. S35.
func TestReplies(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  step "get" {
    action = agent.http.get
    input { url = "http://localhost" }
    output_type = object({ json = object({ id = number, tags = list(string), note = optional(string) }) })
  }
  step "charge" {
    action       = agent.payment.charge
    compensation = "none"
    input { amount = 1 }
  }
}`).Workflow("w")
	get, charge := wf.Steps[0].Do.Output, wf.Steps[1].Do.Output
	for _, tt := range []struct {
		name, reply, want string
		output            func([]byte) (Value, error)
	}{
		{"exact", `{"charge_id":"c"}`, `{"card":null,"charge_id":"c"}`, charge},
		{"missing", `{}`, "", charge},
		{"wrong type", `{"charge_id":["c"]}`, "", charge},
		{"unknown output", `{"charge_id":"c","x":1}`, "", charge},
		{"not an object", `[1]`, "", charge},
		{"not JSON", `{"charge_id":`, "", charge},
		{"deep", `{"charge_id":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "", charge},
		{"narrowed", `{"status":200,"json":{"id":12345678901234567890,"tags":["a"],"more":true},"body":null}`,
			`{"body":null,"json":{"id":12345678901234567890,"note":null,"tags":["a"]},"status":200}`, get},
		{"narrowed wrong", `{"status":200,"json":{"tags":[]}}`, "", get},
		{"narrowed null", `{"status":200}`, "", get},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := tt.output([]byte(tt.reply))
			if tt.want == "" && err == nil || tt.want != "" && (err != nil || string(v.JSON()) != tt.want) {
				t.Errorf("%s, %v; want %s", v.JSON(), err, tt.want)
			}
		})
	}
}

// TestUndoByKey: with the output unknown, arguments that depend on it are left
// out of an undo by key, and are an error in any other.
func TestUndoByKey(t *testing.T) {
	wf := linked(t, archiveText(t, "testdata/valid/undo.txtar")).Workflow("w")
	scope := &Scope{
		Vars: bindAll(t, wf, "sku", "mug"), Failure: &Failure{Step: "x"},
		Self: &Self{Input: jsonValue(`{"sku":"mug","value":1}`), Key: "key-1"},
		Step: func(int) StepResult {
			return StepResult{One: InstanceResult{Output: jsonValue(`{"reservation_id":"r"}`)}}
		},
	}
	for _, tt := range []struct{ step, unknown, known string }{
		{"declared", `{"sku":"mug"}`, `{"reservation_id":"r-1","sku":"mug"}`},
		{"written", "", `{"charge_id":"c-1","reason":"x: r key-1 5"}`},
		{"by_key", `{}`, `{"value":{"n":1}}`},
	} {
		t.Run(tt.step, func(t *testing.T) {
			u := stepNamed(t, wf, tt.step).Undo
			if !u.UsesSelf {
				t.Error("the undo uses self.output")
			}
			s := *scope
			v, err := u.Input(&s)
			if tt.unknown == "" && err == nil || tt.unknown != "" && (err != nil || string(v.JSON()) != tt.unknown) {
				t.Errorf("output unknown: %s, %v", v.JSON(), err)
			}
			self := *scope.Self
			self.OutputKnown, self.Output = true, jsonValue(`{"reservation_id":"r-1","charge_id":"c-1","value":{"n":1}}`)
			if tt.step == "written" {
				self.Input = jsonValue(`{"amount":5}`)
			}
			s.Self = &self
			if v, err = u.Input(&s); err != nil || string(v.JSON()) != tt.known {
				t.Errorf("output known: %s, %v", v.JSON(), err)
			}
		})
	}
}

// nonsensitive() does not turn a secret into text.
func TestSecretStaysSecret(t *testing.T) {
	v, err := functions.Table(&functions.Reads{})["nonsensitive"].Call([]cty.Value{value.SecretValue([]SecretPart{{Ref: "env:A"}})})
	if err != nil {
		t.Fatal(err)
	}
	out, err := value.Encode(v, true)
	if err != nil || string(out.JSON()) != "null" || len(out.Secrets()) != 1 {
		t.Errorf("%s with secrets %v, %v; want one secret", out.JSON(), out.Secrets(), err)
	}
}
