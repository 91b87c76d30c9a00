package flows_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
)

// The language accepts variants of modules, and variants of variants. Their modules have each kind
// of change, and each workflow and step of Module.Flows is in the source.
func TestVariantsAreValid(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(250) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := flows.New(rng)
		before := m.Source()
		for n := range 3 {
			was := m
			m = m.Variant(rng, n+1)
			for _, c := range m.Changes {
				found[c]++
			}
			files := fstest.MapFS{}
			for path, text := range m.Files {
				files[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if _, diags := dsl.Parse(files, dsl.ParseOptions{}); diags.HasErrors() {
				t.Fatalf("seed %d, after %v: %v\n%s\n%s", seed, m.Changes, diags.Err(), was.Source(), m.Source())
			}
			blocks := 0
			for _, f := range m.Flows {
				for _, st := range f.Steps {
					blocks += strings.Count(m.Source(), "step \""+st.Name+"\" {\n") + strings.Count(m.Source(), "group \""+st.Name+"\" {\n")
				}
			}
			if all := strings.Count(m.Source(), "step \"") + strings.Count(m.Source(), "group \""); blocks != all {
				t.Fatalf("seed %d, after %v: the module says %d steps, and the source has %d\n%s", seed, m.Changes, blocks, all, m.Source())
			}
		}
		if m = flows.New(rand.New(rand.NewPCG(seed, 1))); m.Source() != before {
			t.Fatalf("seed %d: a variant has changed its origin", seed)
		}
	}
	listed := map[string]bool{}
	for _, c := range flows.Changes {
		listed[c] = true
		if found[c] < 5 {
			t.Errorf("%d changes %q", found[c], c)
		}
	}
	for c := range found {
		if !listed[c] {
			t.Errorf("%q is missing in the list", c)
		}
	}
}
