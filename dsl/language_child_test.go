package dsl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// childModule has workflow w with this body, and workflow user, which w can start as a child.
func childModule(body string) files {
	return files{"main.hcl": workflow(body), "user.hcl": `
variable "region" { default = "eu" }
workflow "user" {
  deadline = "1h"
  variable "name" { type = string }
  variable "age" {
    type    = number
    default = 18
    validation {
      condition     = var.age >= 18
      error_message = "A user has at least 18 years, this one has ${var.age}."
    }
  }
  variable "pass" {
    type      = string
    default   = ""
    sensitive = true
  }
  step "make" {
    action       = agent.echo.call
    compensation = "none"
    input { value = var.name }
  }
  output "id" { value = "${var.region}-${var.name}" }
  output "open" { value = step.make.output.value }
  output "word" {
    value     = var.pass
    sensitive = true
  }
}
`}
}

// callUser is a step that starts the child, with this input.
func callUser(input string) string {
	return "step \"s\" {\n  workflow = workflow.user\n  input {\n" + input + "\n}\n}\n"
}

// A step with a child run calls the agent of the engine. The values of all variables of the child
// are its input.
func TestChildStep(t *testing.T) {
	wf := linked(t, childModule(`variable "n" {}
`+callUser("name = \"ann-${var.n}\"\nage = \"30\""))).Workflow("w")
	s := stepOf(t, wf, "s")
	if s.Child == nil || s.Child.Workflow.Name != "user" || s.Do.Agent != "workflow" || s.Do.Name != "user" {
		t.Fatalf("child %+v, action %+v", s.Child, s.Do)
	}
	if !s.Calls() || !s.Do.Idempotent || !s.Do.Cancellable || s.Do.ReadOnly || wf.Agents["workflow"] != nil {
		t.Errorf("action %+v, agents %v", s.Do, wf.Agents)
	}
	if st := settingsOf(t, s, nil); st.Retry.MaxAttempts != 1 || st.Timeout.Hours() < 24*365*9 {
		t.Errorf("settings %+v", st)
	}
	v, err := s.Input(scopeOf(bound(t, wf, "n", "1", "region", "us")))
	wantValue(t, v, err, `{"age":30,"name":"ann-1","pass":"","region":"us"}`)
	if p := v.Sensitive(); len(p) != 1 || p[0] != "/pass" {
		t.Errorf("sensitive parts %v", p)
	}
	if u := s.Undo; u == nil || u.Do.Agent != "workflow" || u.Do.Name != "user" || !u.Do.ByKey || !u.Do.Idempotent {
		t.Fatalf("undo %+v", s.Undo)
	}
	v, err = s.Undo.Input(&dsl.Scope{Self: &dsl.Self{Input: document(`{"name":"x"}`)}})
	wantValue(t, v, err, `{"name":"x"}`)
	v, err = s.Do.Output([]byte(`{"id":"a","open":[1],"word":"w"}`))
	wantValue(t, v, err, `{"id":"a","open":[1],"word":"w"}`)
	if p := v.Sensitive(); len(p) != 1 || p[0] != "/word" {
		t.Errorf("sensitive outputs %v", p)
	}
}

// orderWithGroup is a workflow with a group that uses everything around it.
const orderWithGroup = `
variable "items" { type = map(object({ sku = string, parts = list(string) })) }
variable "note" { default = "n" }
locals { label = "${var.note}-${step.first.output.value}" }
step "first" {
  action       = agent.echo.call
  compensation = "none"
  input { value = "one" }
}
step "other" {
  for_each     = toset(["x"])
  action       = agent.echo.call
  compensation = "none"
}
group "pack" {
  for_each     = var.items
  max_failures = 1
  catch { errors = ["no_box"] }
  locals { both = "${local.label}/${each.key}" }
  step "pick" {
    for_each     = toset(each.value.parts)
    action       = agent.echo.call
    compensation = "none"
    input { value = "${each.key} ${local.both} ${step.first.status} ${run.id}" }
  }
  step "box" {
    action       = agent.echo.call
    compensation = "none"
    depends_on   = [step.other]
    input { value = [for k, s in step.pick : "${k}${each.value.sku}"] }
  }
  output "boxes" { value = step.box.output.value }
}
output "all" { value = { for k, g in group.pack : k => g.output.boxes } }
output "a" { value = try(group.pack["a"].output.boxes, null) }
`

// A group is a step with a child run. What its steps use of their surroundings is part of the
// input of that run.
func TestGroup(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow(orderWithGroup)})
	wf := def.Workflow("w")
	g := stepOf(t, wf, "pack")
	inner := def.Workflow("w.pack")
	if g.Child == nil || g.Child.Workflow != inner || !inner.Inner || g.Do.Name != "w.pack" {
		t.Fatalf("group %+v, workflow %+v", g.Child, inner)
	}
	if names := def.Names(); len(names) != 1 || len(def.All()) != 2 {
		t.Errorf("names %v, all %v", names, def.All())
	}
	var after []string
	for _, i := range g.After {
		after = append(after, wf.Steps[i].Name)
	}
	if len(after) != 2 || after[0] != "first" || after[1] != "other" {
		t.Errorf("the group waits for %v", after)
	}
	scope := scopeOf(bound(t, wf, "items", `{ a = { sku = "s", parts = ["p"] } }`))
	scope.Run.ID = "r-1"
	scope.Step = func(i int) dsl.StepResult { return succeeded(`{"value":"one"}`) }
	each, err := g.ForEach(scope)
	if err != nil || len(each.Keys) != 1 {
		t.Fatalf("each %+v, %v", each, err)
	}
	scope.Each = &dsl.EachItem{Key: "a", Value: document(`{"sku":"s","parts":["p"]}`)}
	v, err := g.Input(scope)
	wantValue(t, v, err, `{"each.key":"a","each.value":{"parts":["p"],"sku":"s"},"local.label":"n-one","run.id":"r-1","step.first":{"status":"succeeded"}}`)

	in := scopeOf(v)
	in.Step = func(int) dsl.StepResult {
		return dsl.StepResult{Each: true, Final: true, Instances: []dsl.InstanceResult{{Key: "p", Status: "succeeded"}}}
	}
	in.Each = &dsl.EachItem{Key: "p", Value: document(`"p"`)}
	v, err = stepOf(t, inner, "pick").Input(in)
	wantValue(t, v, err, `{"value":"p n-one/a succeeded r-1"}`)
	in.Each = nil
	v, err = stepOf(t, inner, "box").Input(in)
	wantValue(t, v, err, `{"value":["ps"]}`)
	pick := stepOf(t, inner, "pick")
	if pick.ForEach == nil {
		t.Fatal("no instances")
	}
	if each, err = pick.ForEach(in); err != nil || len(each.Keys) != 1 || each.Keys[0] != "p" {
		t.Errorf("each of the inner step %+v, %v", each, err)
	}
}

// What does not fit a variable of the child fails before the child starts.
func TestChildInputOfARun(t *testing.T) {
	wf := linked(t, childModule("variable \"n\" {}\n"+callUser("name = var.n\nage = try(tonumber(var.n), 20)"))).Workflow("w")
	s := stepOf(t, wf, "s")
	v, err := s.Input(scopeOf(bound(t, wf, "n", "30")))
	wantValue(t, v, err, `{"age":30,"name":"30","pass":"","region":"eu"}`)
	_, err = s.Input(scopeOf(bound(t, wf, "n", "17")))
	wantError(t, err, "A user has at least 18 years, this one has 17")
	_, err = s.Input(scopeOf(document(`{"n":["a"],"region":"eu"}`)))
	wantError(t, err, `variable "name" of workflow "user"`)
}

// A sensitive value may only go to a sensitive variable, and a sensitive output stays one.
func TestChildMarks(t *testing.T) {
	secret := "variable \"p\" {\n  type = string\n  sensitive = true\n}\n"
	def := linked(t, childModule(secret+callUser("name = \"a\"\npass = var.p")+"output \"o\" {\n  value = step.s.output.word\n  sensitive = true\n}\n"))
	if !def.Workflow("w").Confidential {
		t.Error("the parent is not confidential, but its child is")
	}
	_, diags := check(childModule(secret + callUser("name = var.p")))
	wantFindings(t, diags, fails("Sensitive value in input", "var.p", `Variable "name" of workflow "user" is not sensitive`))
	_, diags = check(childModule(callUser("name = \"a\"") + "output \"o\" { value = step.s.output.word }\n"))
	wantFindings(t, diags, fails("Output holds a sensitive value", "step.s.output.word", ""))
}

// The workflows of a library have the agents and the variables of the library.
func TestChildOfALibrary(t *testing.T) {
	f := files{
		"main.hcl": "library \"pay\" { source = \"./lib\" }\nvariable \"region\" { default = \"main\" }\n" +
			workflow("step \"s\" {\n  workflow = library.pay.workflow.send\n  input { to = \"x\" }\n}\noutput \"o\" { value = step.s.output.said }\n"),
		"lib/lib.hcl": "variable \"region\" { default = \"lib\" }\nagent \"voice\" { plugin = \"echo\" }\n" +
			"workflow \"send\" {\n  deadline = \"1h\"\n  variable \"to\" { type = string }\n  group \"g\" {\n    step \"say\" {\n      action = agent.voice.take\n      input { value = \"${var.region} ${var.to}\" }\n    }\n    output \"said\" { value = step.say.output.value }\n  }\n  output \"said\" { value = group.g.output.said }\n}\n",
	}
	def := linked(t, f)
	if all := def.All(); len(all) != 3 || all[0] != "w" || all[1] != "pay.send" || all[2] != "pay.send.g" {
		t.Fatalf("workflows %v", all)
	}
	s := stepOf(t, def.Workflow("w"), "s")
	v, err := s.Input(scopeOf(bound(t, def.Workflow("w"))))
	wantValue(t, v, err, `{"region":"lib","to":"x"}`)
	g := stepOf(t, def.Workflow("pay.send"), "g")
	v, err = g.Input(scopeOf(v))
	wantValue(t, v, err, `{"region":"lib","to":"x"}`)
	say := stepOf(t, def.Workflow("pay.send.g"), "say")
	if a := def.Workflow("pay.send.g").Agents["pay.voice"]; a == nil || a.Plugin != "echo" || say.Do.Agent != "pay.voice" || say.Undo.Do.Agent != "pay.voice" {
		t.Errorf("agent %+v, call %+v, undo %+v", a, say.Do, say.Undo)
	}
	v, err = say.Input(scopeOf(v))
	wantValue(t, v, err, `{"value":"lib x"}`)
	f["lib/lib.hcl"] = "workflow \"send\" {\n  deadline = \"1h\"\n  step \"g\" { action = agent.echo.look }\n}\n"
	f["main.hcl"] += "workflow \"pay\" {\n  deadline = \"1h\"\n  group \"send\" {\n    step \"look\" { action = agent.echo.look }\n  }\n}\n"
	f["main.hcl"] = "library \"pay\" { source = \"./lib\" }\n" + workflow("step \"s\" { workflow = library.pay.workflow.send }\n") +
		"workflow \"pay\" {\n  deadline = \"1h\"\n  group \"send\" {\n    step \"look\" { action = agent.echo.look }\n  }\n}\n"
	_, diags := check(f)
	wantFindings(t, diags, fails("Name used twice", `group "send"`, `"pay.send"`))
}

// A child with a pivot makes its step the pivot. With a compensate block it does not.
func TestChildPivot(t *testing.T) {
	pivot := "workflow \"goes\" {\n  deadline = \"1h\"\n  step \"go\" {\n    action = agent.echo.call\n    pivot  = true\n  }\n}\n"
	f := files{"main.hcl": workflow("step \"s\" { workflow = workflow.goes }\n"+step("a", "")) + pivot}
	wf := linked(t, f).Workflow("w")
	if wf.Pivot < 0 || wf.Steps[wf.Pivot].Name != "s" || len(wf.Steps[wf.Pivot].After) != 1 {
		t.Errorf("pivot %d", wf.Pivot)
	}
	f["main.hcl"] = workflow("step \"s\" {\n  workflow = workflow.goes\n  compensate { action = agent.echo.put_back }\n}\n"+step("a", "")) + pivot
	wf = linked(t, f).Workflow("w")
	if s := stepOf(t, wf, "s"); wf.Pivot >= 0 || s.Undo.Do.Agent != "echo" || s.Undo.Declared {
		t.Errorf("pivot %d, undo %+v", wf.Pivot, s.Undo)
	}
	f["main.hcl"] = workflow("group \"g\" {\n  step \"go\" {\n    action = agent.echo.call\n    pivot = true\n  }\n}\n" + step("after", "depends_on = [group.g]\n"))
	_, diags := check(f)
	wantFindings(t, diags, fails("Step after the pivot can fail", `step "after"`, `After the pivot "g"`))
}

// A group in a group takes what it uses through the outer group.
func TestGroupInAGroup(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow(`
variable "n" { default = 1 }
step "first" { value = "f" }
group "a" {
  for_each = { k = "v" }
  step "own" { value = "o${step.first.output}" }
  group "b" {
    step "inner" { value = "${each.value} ${var.n} ${step.first.output} ${step.own.output}" }
    output "x" { value = step.inner.output }
  }
  output "x" { value = group.b.output.x }
}
output "x" { value = group.a["k"].output.x }
`)})
	g := stepOf(t, def.Workflow("w"), "a")
	scope := scopeOf(bound(t, def.Workflow("w")))
	scope.Step = func(int) dsl.StepResult { return succeeded(`"f"`) }
	scope.Each = &dsl.EachItem{Key: "k", Value: document(`"v"`)}
	v, err := g.Input(scope)
	wantValue(t, v, err, `{"each.value":"v","n":1,"step.first":{"output":"f"}}`)
	b := stepOf(t, def.Workflow("w.a"), "b")
	in := scopeOf(v)
	in.Step = func(int) dsl.StepResult { return succeeded(`"of"`) }
	v, err = b.Input(in)
	wantValue(t, v, err, `{"each.value":"v","n":1,"step.first":{"output":"f"},"step.own":{"output":"of"}}`)
	v, err = stepOf(t, def.Workflow("w.a.b"), "inner").Value(scopeOf(v))
	wantValue(t, v, err, `"v 1 f of"`)
}

// A group has the retry defaults and the deadline of the compensation of its workflow.
func TestGroupSettings(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow(`
variable "tries" { default = 7 }
retry {
  max_attempts = var.tries
  jitter       = "none"
}
compensation {
  mode     = "manual"
  deadline = "${var.tries}h"
}
group "g" {
  group "h" {
    step "s" { action = agent.echo.take }
  }
}
`)})
	v, err := stepOf(t, def.Workflow("w"), "g").Input(scopeOf(bound(t, def.Workflow("w"))))
	wantValue(t, v, err, `{"compensation.deadline":"7h","retry.max_attempts":7}`)
	v, err = stepOf(t, def.Workflow("w.g"), "h").Input(scopeOf(v))
	wantValue(t, v, err, `{"compensation.deadline":"7h","retry.max_attempts":7}`)
	h := def.Workflow("w.g.h")
	st := settingsOf(t, stepOf(t, h, "s"), scopeOf(v))
	if st.Retry.MaxAttempts != 7 || st.Retry.Jitter || h.CompensationMode != dsl.ModeManual {
		t.Errorf("settings %+v, mode %v", st.Retry, h.CompensationMode)
	}
	if l, err := h.CompensationDeadline(scopeOf(v)); err != nil || l.After.Hours() != 7 {
		t.Errorf("deadline %+v, %v", l, err)
	}
}

// Each child run gets the values of the variables of the module, so both together are limited.
func TestTooManyChildRuns(t *testing.T) {
	vars, groups := strings.Builder{}, strings.Builder{}
	for i := range 1100 {
		fmt.Fprintf(&vars, "variable \"v%d\" { default = 1 }\n", i)
		fmt.Fprintf(&groups, "group \"g%d\" {\n  step \"s\" { value = 1 }\n}\n", i)
	}
	_, diags := check(files{"main.hcl": vars.String() + workflow(groups.String())})
	wantFindings(t, diags, fails("Too many workflows", "", "1 workflows, 1100 groups and steps with child runs, and 1100 variables"))
}
