package journal_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
)

// The ids of a definition are found by any of its workflows, but not by a workflow of another definition.
func TestFamilyOfAnotherDefinition(t *testing.T) {
	define := func(value string) *dsl.Definition {
		m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "a" {
  step "v" { value = ` + value + ` }
}
workflow "b" {
  step "v" { value = 1 }
}`)}}, dsl.ParseOptions{})
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		def, diags := dsl.Link(m, nil)
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		return def
	}
	first, second := define("1"), define("2")
	mem := memory.New(memory.Options{})
	all := journal.NewDefinitions(mem, nil)
	ids := map[*dsl.Definition]map[string]store.WorkflowID{}
	for _, def := range []*dsl.Definition{first, second} {
		var err error
		if ids[def], err = all.Put(t.Context(), def); err != nil {
			t.Fatal(err)
		}
	}
	member := func(id store.WorkflowID) func() (store.WorkflowID, error) {
		return func() (store.WorkflowID, error) { return id, nil }
	}
	defs := journal.NewDefinitions(mem, nil) // of another engine
	if got, err := defs.Family(t.Context(), second.Digest(), member(ids[first]["a"])); err == nil || !strings.Contains(err.Error(), "belongs to definition") {
		t.Errorf("Family of another definition = %v, %v, want an error", got, err)
	}
	got, err := defs.Family(t.Context(), second.Digest(), member(ids[second]["b"]))
	if err != nil || got["a"] != ids[second]["a"] || got["b"] != ids[second]["b"] || len(got) != 2 {
		t.Errorf("Family = %v, %v, want %v", got, err, ids[second])
	}
}
