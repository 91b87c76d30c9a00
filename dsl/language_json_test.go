package dsl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// twins are modules in both forms, which mean the same.
func twins() []struct{ name, hcl, json string } {
	return []struct{ name, hcl, json string }{
		{"everything of a step", `
agent "shop" {
  plugin  = "shop"
  version = "~> 1.2"
  env     = ["HOME"]
  config {
    region = "eu"
    port   = 8443
  }
  circuit_breaker {
    trip_after = 3
    cool_down  = "1m"
  }
}
variable "region" {
  type    = string
  default = "eu"
}
locals { where = "${var.region}-1" }
workflow "w" {
  description = "All of it."
  deadline    = "2h"
  unique { key = "k-${var.id}" }
  compensation {
    mode     = "manual"
    deadline = "3h"
  }
  retry { max_interval = "20s" }
  variable "id" {
    type        = string
    description = "Which."
    sensitive   = false
    validation {
      condition     = length(var.id) > 1
      error_message = "id ${var.id} is short"
    }
  }
  variable "rows" {
    type    = map(object({ n = number, tag = optional(string, "none") }))
    default = { a = { n = 1 } }
  }
  step "reserve" {
    action       = agent.shop.reserve
    for_each     = var.rows
    max_parallel = 2
    max_failures = "50%"
    timeout      = "5s"
    deadline     = "1m"
    when         = each.value.n > 0
    input {
      sku = "${each.key}-${each.value.tag}"
      qty = each.value.n
    }
    retry {
      max_attempts = 4
      not_on       = ["out_of_stock"]
    }
    idempotency_key = "key-${each.key}"
  }
  step "charge" {
    action      = agent.shop.charge
    depends_on  = [step.reserve]
    output_type = object({ charge_id = string })
    input { amount = 2.50 }
    precondition {
      condition     = var.region != ""
      error_message = "no region"
      error_code    = "no_region"
    }
    postcondition {
      condition     = self.output.charge_id != ""
      error_message = "empty"
    }
    catch {
      errors = ["card_declined"]
      output = { charge_id = "none" }
    }
    compensate {
      action  = agent.shop.refund
      timeout = "9s"
      retry { jitter = "none" }
      input {
        charge_id = self.output.charge_id
        reason    = "code ${failure.code}"
      }
    }
  }
  step "tell" {
    action       = agent.echo.call
    compensation = "none"
    input { value = { text = "at ${local.where}", list = [1, true, null, "x"], token = secret("env:T") } }
  }
  output "id" {
    value       = try(step.charge.output.charge_id, null)
    description = "The charge."
  }
}
`, `{
  "agent": {"shop": {
    "plugin": "shop", "version": "~> 1.2", "env": ["HOME"],
    "config": {"region": "eu", "port": 8443}, "circuit_breaker": {"trip_after": 3, "cool_down": "1m"}
  }},
  "variable": {"region": {"type": "string", "default": "eu"}},
  "locals": {"where": "${var.region}-1"},
  "workflow": {"w": {
    "description": "All of it.", "deadline": "2h",
    "unique": {"key": "k-${var.id}"}, "compensation": {"mode": "manual", "deadline": "3h"}, "retry": {"max_interval": "20s"},
    "variable": {
      "id": {"type": "string", "description": "Which.", "sensitive": false, "validation": [{"condition": "${length(var.id) > 1}", "error_message": "id ${var.id} is short"}]},
      "rows": {"type": "map(object({ n = number, tag = optional(string, \"none\") }))", "default": {"a": {"n": 1}}}
    },
    "step": {
      "reserve": {
        "action": "agent.shop.reserve", "for_each": "${var.rows}", "max_parallel": 2, "max_failures": "50%", "timeout": "5s", "deadline": "1m", "when": "${each.value.n > 0}",
        "input": {"sku": "${each.key}-${each.value.tag}", "qty": "${each.value.n}"},
        "retry": {"max_attempts": 4, "not_on": ["out_of_stock"]}, "idempotency_key": "key-${each.key}"
      },
      "charge": {
        "action": "${agent.shop.charge}", "depends_on": ["${step.reserve}"], "output_type": "object({ charge_id = string })", "input": {"amount": 2.50},
        "precondition": {"condition": "${var.region != \"\"}", "error_message": "no region", "error_code": "no_region"},
        "postcondition": [{"condition": "${self.output.charge_id != \"\"}", "error_message": "empty"}],
        "catch": {"errors": ["card_declined"], "output": {"charge_id": "none"}},
        "compensate": {"action": "agent.shop.refund", "timeout": "9s", "retry": {"jitter": "none"}, "input": {"charge_id": "${self.output.charge_id}", "reason": "code ${failure.code}"}}
      },
      "tell": {
        "action": "agent.echo.call", "compensation": "none",
        "input": {"value": {"text": "at ${local.where}", "list": [1, true, null, "x"], "token": "${secret(\"env:T\")}"}}
      }
    },
    "output": {"id": {"value": "${try(step.charge.output.charge_id, null)}", "description": "The charge."}}
  }}
}`},
		{"pivot and promises", `
workflow "w" {
  deadline = "1h"
  step "go" {
    action          = agent.echo.once
    pivot           = true
    idempotent      = true
  }
  step "look" {
    action     = agent.echo.once
    read_only  = true
    depends_on = [step.go]
  }
}
`, `{"workflow": {"w": {"deadline": "1h", "step": {
  "go": {"action": "agent.echo.once", "pivot": true, "idempotent": true},
  "look": {"action": "agent.echo.once", "read_only": true, "depends_on": ["step.go"]}
}}}}`},
	}
}

// describeWorkflow writes what a workflow is and how its expressions evaluate.
func describeWorkflow(t *testing.T, wf *dsl.Workflow) string {
	t.Helper()
	var b strings.Builder
	vars := dsl.Value{}
	if slices.ContainsFunc(wf.Variables, func(v dsl.Variable) bool { return v.Name == "id" }) {
		vars = bound(t, wf, "id", "o-7")
	}
	scope := scopeOf(vars)
	scope.Each = &dsl.EachItem{Key: "a", Value: document(`{"n":1,"tag":"red"}`)}
	scope.Self = &dsl.Self{Input: document(`{"amount":2.5}`), Output: document(`{"charge_id":"c"}`), OutputKnown: true, Key: "k"}
	scope.Failure = &dsl.Failure{Step: "s", Code: "x"}
	scope.Step = func(i int) dsl.StepResult { return succeeded(`{"charge_id":"c-1","card":null}`) }
	text := func(f func(*dsl.Scope) (string, error)) string {
		if f == nil {
			return "-"
		}
		s, err := f(scope)
		return fmt.Sprint(s, " ", err)
	}
	truth := func(f func(*dsl.Scope) (bool, error)) string {
		if f == nil {
			return "-"
		}
		v, err := f(scope)
		return fmt.Sprint(v, err)
	}
	value := func(f func(*dsl.Scope) (dsl.Value, error)) string {
		if f == nil {
			return "-"
		}
		v, err := f(scope)
		return fmt.Sprintf("%s %q %v %v", v.JSON(), v.Sensitive(), v.Secrets(), err)
	}
	settings := func(f func(*dsl.Scope) (*dsl.Settings, error)) string {
		s, err := f(scope)
		if err != nil {
			return err.Error()
		}
		failures := 0
		if s.MaxFailures != nil {
			failures = s.MaxFailures(10)
		}
		return fmt.Sprint(s.Timeout, s.Deadline, s.HeartbeatTimeout, s.Retry, s.MaxParallel, failures)
	}
	action := func(a *dsl.Action) string {
		if a == nil {
			return "-"
		}
		return fmt.Sprint(a.Agent, a.Name, a.Idempotent, a.ReadOnly, a.ByKey, a.Lookup, a.Cancellable, a.Typical, a.Skeleton())
	}
	fmt.Fprintln(&b, wf.Name, wf.Description, wf.Order, wf.Pivot, wf.Variables, wf.CompensationMode, wf.Shortest, wf.Confidential, vars.IsNull(), string(vars.JSON()), text(wf.UniqueKey))
	for _, limit := range []func(*dsl.Scope) (dsl.Limit, error){wf.Deadline, wf.CompensationDeadline} {
		if limit != nil {
			l, err := limit(scope)
			fmt.Fprintln(&b, l, err)
		}
	}
	var names []string
	for name := range wf.Agents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a := wf.Agents[name]
		fmt.Fprintln(&b, a.Name, a.Plugin, a.Version, a.Checksum, a.Instances, a.MaxConcurrency, a.RateLimit, a.Env, a.Breaker, value(a.Config))
	}
	for _, s := range wf.Steps {
		fmt.Fprintln(&b, s.Index, s.Name, s.After, s.Before, s.NoUndo, s.Pivot, s.OnRerun, action(s.Do), truth(s.When), truth(s.WhenEach), text(s.IdempotencyKey), value(s.Input), settings(s.Settings))
		if s.ForEach != nil {
			each, err := s.ForEach(scope)
			fmt.Fprintln(&b, each.Keys, len(each.Values), string(each.Values[0].JSON()), err)
		}
		for _, c := range slices.Concat(s.Pre, s.Post) {
			fmt.Fprintln(&b, truth(c.Check), text(c.Message), text(c.Code))
		}
		if s.Catch != nil {
			codes, err := s.Catch.Errors(scope)
			fmt.Fprintln(&b, codes, err, value(s.Catch.Output))
		}
		if u := s.Undo; u != nil {
			fmt.Fprintln(&b, action(u.Do), value(u.Input), u.UsesSelf, u.Declared, settings(u.Settings), u.Retryable("bank_closed"))
		}
		fmt.Fprintln(&b, s.Retryable("gateway_busy"))
	}
	for _, o := range wf.Outputs {
		fmt.Fprintln(&b, o.Name, o.Description, o.Sensitive, value(o.Value))
	}
	return b.String()
}

// wantSameText compares two texts line by line.
func wantSameText(t *testing.T, got, want string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("line %d\ngot  %s\nwant %s", i+1, strings.Join(a[min(i, len(a)):], "\n"), strings.Join(b[min(i, len(b)):], "\n"))
		}
	}
}

// TestFormsMeanTheSame: the JSON form of a module gives the same workflow as the native
// one.
func TestFormsMeanTheSame(t *testing.T) {
	for _, tt := range twins() {
		t.Run(tt.name, func(t *testing.T) {
			native := linked(t, files{"main.hcl": tt.hcl})
			twin := linked(t, files{"main.hcl.json": tt.json})
			wantSameText(t, describeWorkflow(t, twin.Workflow("w")), describeWorkflow(t, native.Workflow("w")))
			if native.Digest() == twin.Digest() {
				t.Error("two texts have one digest")
			}
		})
	}
}

// TestFormsTogether: files of both forms make up one module.
func TestFormsTogether(t *testing.T) {
	wf := linked(t, files{
		"a.hcl": "variable \"v\" { default = 1 }\nlocals { l = \"${local.m}!\" }\n", "b.hcl.json": `{"locals": {"m": "${var.v}"}, "workflow": {"w": {"deadline": "1h", "output": {"o": {"value": "${local.l}"}}}}}`,
	}).Workflow("w")
	v, err := wf.Outputs[0].Value(scopeOf(bound(t, wf)))
	wantValue(t, v, err, `"1!"`)
}

// TestValuesOfJSON: a string is a template, everything else is what it is.
func TestValuesOfJSON(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`: `"plain"`, `"${1 + 1}"`: "2", `"a${1 + 1}"`: `"a2"`, `"$${x}"`: `"${x}"`, `"%{ if true }a%{ endif }"`: `"a"`, `""`: `""`, `"\u00fc\n"`: `"ü\n"`,
		`5`: "5", `2.50`: "2.5", `9007199254740993`: "9007199254740993", `1e400`: "1" + strings.Repeat("0", 400), `true`: "true", `null`: "null", `[]`: "[]", `{}`: "{}",
		`[1, "${upper(\"x\")}", {"a": null}]`: `[1,"X",{"a":null}]`, `{"b": 1, "${upper(\"a\")}": 2}`: `{"A":2,"b":1}`, `"${[for x in [1, 2] : x * 2]}"`: "[2,4]", `"${null}"`: "null",
	} {
		wf := linked(t, files{"main.hcl.json": `{"workflow": {"w": {"deadline": "1h", "output": {"o": {"value": ` + in + `}}}}}`}).Workflow("w")
		v, err := wf.Outputs[0].Value(&dsl.Scope{})
		wantValue(t, v, err, want)
	}
}

// TestMistakesInJSON: the JSON form gives the diagnostics of the native form, at the
// places in the JSON text.
func TestMistakesInJSON(t *testing.T) {
	in := func(body string) string {
		return `{"workflow": {"w": {"deadline": "1h", "step": {"s": {"action": "agent.echo.call", "compensation": "none", ` + body + `}}}}}`
	}
	for _, tt := range []struct {
		name, src string
		want      []finding
	}{
		{"an unknown argument", in(`"timeot": "1s"`), finds(fails("Extraneous JSON object property", `"timeot"`, `No argument or block type is named "timeot". Did you mean "timeout"?`))},
		{"a wrong value", in(`"timeout": 5`), finds(fails("Invalid value for timeout", "5", noDuration))},
		{"an unknown variable", in(`"input": {"value": "a ${var.v} b"}`), finds(fails("Reference to undeclared variable", "var.v", `There is no variable named "v".`))},
		{"an unknown function", in(`"input": {"value": "${upr(1)}"}`), finds(fails("Call to unknown function", "upr", `There is no function named "upr".`))},
		{"a template that is none", in(`"input": {"value": "${"}`), finds(fails("Missing expression", "", "Expected the start of an expression"))},
		{"a template inside of a list that is none", in(`"input": {"value": [1, {"a": "${"}]}`), finds(fails("Missing expression", "", "Expected the start of an expression"))},
		{"an action that is none", `{"workflow": {"w": {"deadline": "1h", "step": {"s": {"action": "agent.echo"}}}}}`, finds(fails("Invalid action", `"agent.echo"`, "An action is written agent.NAME.ACTION"))},
		{"an action that is computed", `{"workflow": {"w": {"deadline": "1h", "step": {"s": {"action": "${upper(\"x\")}"}}}}}`, finds(fails("Invalid action", `"${upper(\"x\")}"`, "An action is written agent.NAME.ACTION"))},
		{"a step to wait for that does not exist", in(`"depends_on": ["step.a"]`), finds(fails("Reference to undeclared step", "", `There is no step named "a"`))},
		{"a step to wait for that is no step", in(`"depends_on": ["a", 5]`), finds(fails("Invalid depends_on", "", "depends_on is a list of steps"), fails("Invalid depends_on", "", "depends_on is a list of steps"))},
		{"no list of steps", in(`"depends_on": "step.s"`), finds(fails("Invalid depends_on", `"step.s"`, "depends_on is a list of steps"))},
		{"a literal that is computed", in(`"pivot": "${true || false}"`), nil},
		{"a literal that calls a function", in(`"pivot": "${tobool(\"true\")}"`), finds(fails("Not a literal value", `"${tobool(\"true\")}"`, "pivot must be known when the file is read"))},
		{"a type that is none", `{"variable": {"v": {"type": "strin", "default": 1}}}`, finds(fails("Invalid type specification", "", `Did you mean "string"?`))},
		{"a type that cannot be read", `{"variable": {"v": {"type": "list(", "default": 1}}}`, finds(fails("Missing expression", "", ""))},
		{"a type that is nested too deep", `{"variable": {"v": {"type": "` + strings.Repeat("list(", 300) + `", "default": 1}}}`, finds(fails("Nesting too deep", "", ""))},
		{"a type that is no text", `{"variable": {"v": {"type": 5, "default": 1}}}`, finds(fails("Invalid type specification", "5", ""))},
		{"no JSON", `{"workflow": `, finds(fails("Root value must be object", "", ""), fails("Unclosed object", "", ""), fails("Missing value", "", ""))},
		{"nested too deep", strings.Repeat("[", 201) + strings.Repeat("]", 201), finds(fails("Nesting too deep", "", "nested at most 200 deep"))},
		{"a secret where none may be", in(`"when": "${secret(\"env:X\") == \"y\"}"`), finds(fails("secret() not allowed here", "", "secret() may stand only"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := check(files{"main.hcl.json": tt.src})
			got := diags.Errors()
			if len(got) != len(tt.want) {
				t.Fatalf("findings %v, want %v", got, tt.want)
			}
			for i, w := range tt.want {
				if got[i].Summary != w.summary || !strings.Contains(got[i].Detail, w.detail) || w.at != "" && marked(got[i]) != w.at || got[i].Range.File != "main.hcl.json" {
					t.Errorf("%s @ %s: %s\nwant %s", got[i].Summary, marked(got[i]), got[i].Detail, w)
				}
			}
		})
	}
}
