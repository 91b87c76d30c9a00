package journal_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
)

// A library counts how often a definition is read.
type library struct {
	store.Catalogue
	reads int
}

// Definition counts the call.
func (l *library) Definition(ctx context.Context, id store.WorkflowID) (store.Definition, string, error) {
	l.reads++
	return l.Catalogue.Definition(ctx, id)
}

// A definition is read once for all its workflows, while a caller keeps it. A module with hundreds of
// workflows would otherwise be read hundreds of times.
func TestSharedDefinitionIsReadOnce(t *testing.T) {
	source := ""
	for _, name := range []string{"a", "b", "c"} {
		source += fmt.Sprintf("workflow %q {\n  step \"s\" { value = %q }\n}\n", name, name)
	}
	module, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(module, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	l := &library{Catalogue: memory.New(memory.Options{})}
	ids, err := journal.NewDefinitions(l, nil).Put(t.Context(), def)
	if err != nil {
		t.Fatal(err)
	}
	defs := journal.NewDefinitions(l, nil) // of another engine
	var first *dsl.Definition
	for name, id := range ids {
		got, err := defs.Shared(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got.Workflow(name) == nil || first != nil && got != first {
			t.Errorf("workflow %s: %p, want the definition %p that holds it", name, got, first)
		}
		first = got
	}
	if l.reads != 1 {
		t.Errorf("the definition was read %d times, want once", l.reads)
	}
	runtime.KeepAlive(first)
	if _, err := defs.Shared(t.Context(), 99); err == nil {
		t.Error("there is a definition of an unknown workflow")
	}
}
