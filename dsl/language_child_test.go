package dsl_test

import (
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
