package dsl_test

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/aspects"
)

const movedBefore = `
locals { price = 1 }
variable "x" { default = "five" }
workflow "w" {
  deadline = "1h"
  step "a" { value = local.price }
  step "b" {
    value      = "b" # a comment
    depends_on = [step.a]
  }
}
`

const movedAfter = `
moved {
  from = step.a
  to   = step.middle
}
moved {
  from = step.middle
  to   = step.alpha
}
locals { price = 2 }
variable "x" { default = "five" }
variable "y" { default = 6 }
workflow "w" {
  deadline = "1h"
  step "new" { value = 7 }
  step "alpha" { value = local.price }
  step "b" {
    depends_on = [step.alpha]
    value      = "b"
  }
}
`

// A chain of moved blocks leads from each earlier name to the present one.
func TestMovedNames(t *testing.T) {
	wf := linkText(t, movedAfter)
	want := map[string]string{"a": "alpha", "middle": "alpha"}
	if !maps.Equal(wf.Moved, want) {
		t.Errorf("Moved = %v, want %v", wf.Moved, want)
	}
}

// The text of a part contains its locals, and neither the order of attributes nor comments.
func TestPartsOfSteps(t *testing.T) {
	before, after := linkText(t, movedBefore), linkText(t, movedAfter)
	if a, b := before.Steps[0].Aspects(), after.Steps[1].Aspects(); a["value"] == b["value"] {
		t.Errorf("the local has changed, and both values are %q", a["value"])
	}
	if a, b := before.Steps[1].Aspects(), after.Steps[2].Aspects(); !maps.Equal(a, b) {
		t.Errorf("step b has not changed: %q and %q", a, b)
	}
}

// A workflow that replaces another one in a run has its steps at the numbers of the run's nodes. A
// step keeps the name that it has in idempotency keys, and no other step can get this name.
func TestPlaced(t *testing.T) {
	before, after := linkText(t, movedBefore), linkText(t, movedAfter)
	flow := after.Renumbered(before, []int32{1, 2, -1, 0})
	var names, keys []string
	for i, s := range flow.Steps {
		if s.Index != i {
			t.Errorf("step %d has the index %d", i, s.Index)
		}
		names, keys = append(names, s.Name), append(keys, s.KeyName())
	}
	if want := []string{"alpha", "b", "", "new"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if want := []string{"a", "b", "", "new"}; !slices.Equal(keys, want) {
		t.Errorf("names in keys %q, want %q", keys, want)
	}
	if !slices.Equal(flow.Steps[1].After, []int{0}) || flow.NodeOf(0) != 3 || !flow.Steps[2].Instance {
		t.Errorf("after %v, node %d, instance %v", flow.Steps[1].After, flow.NodeOf(0), flow.Steps[2].Instance)
	}
	again := before.Renumbered(flow, []int32{-1, 1, -1, -1, 0})
	if s := again.Steps[4]; s.Name != "a" || s.KeyName() != "a@4" {
		t.Errorf("a new step named %q has the name %q in keys", s.Name, s.KeyName())
	}
	if s := again.Steps[0]; !s.Gone || s.Name != "alpha (removed)" {
		t.Errorf("the removed step is %q, gone %v", s.Name, s.Gone)
	}
}

// The values of a run stay, and a new variable gets its default.
func TestRebind(t *testing.T) {
	vars, diags := aspects.Rebind(linkText(t, movedAfter), dsl.NewValue([]byte(`{"x":"${1}","gone":1}`), nil, nil))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if got, want := string(vars.JSON()), `{"x":"${1}","y":6}`; got != want {
		t.Errorf("variables %s, want %s", got, want)
	}
	_, diags = aspects.Rebind(linkText(t, `
variable "z" { type = number }
workflow "w" {
  deadline = "1h"
  step "a" { value = var.z }
}`), dsl.NewValue([]byte(`{}`), nil, nil))
	if !diags.HasErrors() {
		t.Error("a variable without a value was accepted")
	}
}

func linkText(t *testing.T, text string) *dsl.Workflow {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(text)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return def.Workflow("w")
}
