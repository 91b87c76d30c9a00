package flows_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/language"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
)

// A block is a block of the JSON that `engine schema` prints.
type block struct {
	Name       string
	Attributes []struct{ Name string }
	Blocks     []block
}

// A reference is a reference of the JSON that `engine schema` prints.
type reference struct {
	Root       string
	Attributes []reference
}

// name returns the name of a block, or of an attribute in it: the blocks around it, from the nearest
// block on that may be in workflows and in groups. If the parameter attribute is "", it returns the name
// of the block.
func name(path []string, attribute string) string {
	for i := len(path) - 1; i > 0; i-- {
		if slices.Contains([]string{"step", "group", "variable", "output"}, path[i]) {
			path = path[i:]
			break
		}
	}
	return strings.TrimSuffix(strings.Join(path, ".")+"."+attribute, ".")
}

// names adds all names in the blocks to the set.
func names(set map[string]bool, path []string, blocks []block) {
	for _, b := range blocks {
		in := append(slices.Clone(path), b.Name)
		set[name(in, "")] = true
		for _, a := range b.Attributes {
			set[name(in, a.Name)] = true
		}
		names(set, in, b.Blocks)
	}
}

// references adds all references to the set: the first name, and the attribute if there is one.
func references(set map[string]bool, of []reference) {
	for _, r := range of {
		if len(r.Attributes) == 0 {
			set["ref "+r.Root] = true
		}
		for _, a := range r.Attributes {
			set["ref "+r.Root+"."+a.Root] = true
		}
	}
}

// used adds the names and references in a file to the set.
func used(set map[string]bool, path []string, body *hclsyntax.Body) {
	for _, b := range body.Blocks {
		in := append(slices.Clone(path), b.Type)
		set[name(in, "")] = true
		used(set, in, b.Body)
	}
	for _, a := range body.Attributes {
		set[name(path, a.Name)] = true
		for _, v := range a.Expr.Variables() {
			set["ref "+refers(v)] = true
		}
	}
}

// refers returns the name of a reference: its first name, and the attribute of what it refers to.
func refers(v hcl.Traversal) string {
	var all []string
	for _, part := range v {
		switch part := part.(type) {
		case hcl.TraverseRoot:
			all = append(all, part.Name)
		case hcl.TraverseAttr:
			all = append(all, part.Name)
		}
	}
	switch {
	case len(all) > 2 && (all[0] == "step" || all[0] == "group"):
		return all[0] + "." + all[2]
	case len(all) > 1 && slices.Contains([]string{"self", "each", "run", "failure", "event"}, all[0]):
		return all[0] + "." + all[1]
	}
	return all[0]
}

// left returns the entry of flows.Left that covers a name; "" = there is none.
func left(name string) string {
	for end := len(name); end > 0; end = strings.LastIndex(name[:end], ".") {
		if flows.Left[name[:end]] != "" {
			return name[:end]
		}
	}
	return ""
}

// Each name that `engine schema` prints, except the functions, is in a generated module, or in the list
// of what is left out. The list names nothing else.
func TestModulesHaveEveryName(t *testing.T) {
	raw, err := json.Marshal(language.Describe())
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Blocks     []block
		References []reference
	}
	if err := json.Unmarshal(raw, &described); err != nil {
		t.Fatal(err)
	}
	known, has := map[string]bool{}, map[string]bool{}
	names(known, nil, described.Blocks)
	references(known, described.References)
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for path, text := range flows.New(rng).Variant(rng, 1).Files {
			f, diags := hclsyntax.ParseConfig([]byte(text), path, hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			used(has, nil, f.Body.(*hclsyntax.Body))
		}
	}
	if len(known) < 150 {
		t.Fatalf("the schema has %d names", len(known))
	}
	entries := map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(known)) {
		switch entry := left(n); {
		case entry == "" && !has[n]:
			t.Errorf("no module has %q: generate it, or say in flows.Left why not", n)
		case entry != "" && has[n]:
			t.Errorf("modules have %q, but flows.Left says that they do not", n)
		case entry != "":
			entries[entry] = true
		}
	}
	for entry, why := range flows.Left {
		if !entries[entry] || why == "" {
			t.Errorf("flows.Left has %q (%s), which the schema does not have", entry, fmt.Sprint(why))
		}
	}
}
