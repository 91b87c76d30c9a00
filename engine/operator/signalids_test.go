package operator

import (
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
)

// A workflow of a library may have the same form of name as a group: the steps of the workflow decide.
func TestIsGroup(t *testing.T) {
	m, diags := dsl.Parse(fstest.MapFS{
		"main.hcl": {Data: []byte(`
library "shop" { source = "./lib" }
workflow "shop" {
  step "ship" { workflow = library.shop.workflow.ship }
  group "box" {
    step "v" { value = 1 }
  }
}`)},
		"lib/lib.hcl": {Data: []byte(`
workflow "ship" {
  step "v" { value = 1 }
}`)},
	}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	for name, want := range map[string]bool{
		"shop.box": true, "shop.ship": false,
		"shop.former": true, // a group of an earlier definition
		"other.box":   false, "shopping.box": false,
	} {
		if got := isGroup(name, def.Workflow("shop")); got != want {
			t.Errorf("isGroup(%q) = %t, want %t", name, got, want)
		}
	}
}
