package dsl

import "testing"

// A condition about each is the instances'; any other is the step's and is
// evaluated before for_each.
func TestWhenOfStepAndOfInstance(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  variable "on" { type = bool }
  step "whole" {
    when         = var.on
    for_each     = toset(["a"])
    action       = agent.mock.call
    compensation = "none"
  }
  step "one" {
    when         = var.on && each.key != "a"
    for_each     = toset(["a"])
    action       = agent.mock.call
    compensation = "none"
  }
}
`).Workflow("w")
	scope := &Scope{Vars: bindAll(t, wf, "on", "true")}
	whole, one := stepNamed(t, wf, "whole"), stepNamed(t, wf, "one")
	if whole.WhenEach != nil || one.When != nil {
		t.Fatal("a condition is at the wrong place")
	}
	if yes, err := whole.When(scope); err != nil || !yes {
		t.Errorf("when of the step: %t, %v", yes, err)
	}
	scope.Each = &EachItem{Key: "a", Value: jsonValue(`"a"`)}
	if yes, err := one.WhenEach(scope); err != nil || yes {
		t.Errorf("when of the instance: %t, %v", yes, err)
	}
}
