package flows_test

import (
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
)

// The language accepts every generated module, and a thousand modules have every construct of the
// list. Package sim links the modules.
func TestModulesAreValid(t *testing.T) {
	found := map[string]bool{}
	for seed := range uint64(1000) {
		m := flows.New(rand.New(rand.NewPCG(seed, 1)))
		files := fstest.MapFS{}
		for path, text := range m.Files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if _, diags := dsl.Parse(files, dsl.ParseOptions{}); diags.HasErrors() {
			t.Fatalf("seed %d: %v\n%s", seed, diags.Err(), m.Source())
		}
		for _, f := range m.Flows {
			for _, u := range f.Uses {
				found[u] = true
			}
			for _, s := range f.Steps {
				for _, u := range s.Uses {
					found[u] = true
				}
			}
		}
	}
	listed := map[string]bool{}
	for _, c := range flows.All {
		listed[c] = true
		if !found[c] {
			t.Errorf("no module has %q", c)
		}
	}
	for c := range found {
		if !listed[c] {
			t.Errorf("%q is missing in the list", c)
		}
	}
}
