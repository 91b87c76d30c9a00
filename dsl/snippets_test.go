package dsl

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/sdk/schema"
)

// Every HCL snippet of the language reference is valid. A snippet that begins with a step or a notify
// block is the body of a workflow. A library that it names is the snippet about declared actions.
func TestSnippetsOfTheReference(t *testing.T) {
	text, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(found) < 6 {
		t.Fatalf("%d snippets: the test reads the wrong page", len(found))
	}
	for _, m := range found {
		snippet := m[1]
		if strings.HasPrefix(snippet, "step ") || strings.HasPrefix(snippet, "notify ") {
			snippet = "workflow \"w\" {\n  deadline = \"1d\"\n" + snippet + "}\n"
		}
		files := fstest.MapFS{"main/a.hcl": {Data: []byte(snippet)}, "shared/shop/a.hcl": {Data: []byte("agent \"payment\" {}\n")}}
		inside, err := files.Sub("main")
		if err != nil {
			t.Fatal(err)
		}
		mod, diags := Parse(inside, ParseOptions{Env: testEnv, EngineVersion: "0.3.0", Root: files, Home: "main"})
		agents := usedAgents(mod)
		for _, use := range mod.Agents() {
			if bin, ok := agents[use.Name]; ok && use.Plugin == "mock" { // as the built-in agent
				bin.Schema.Actions = maps.Clone(bin.Schema.Actions)
				bin.Schema.Actions["do"] = schema.Action{
					Idempotent: true, CompensatedBy: "undo",
					Inputs:  []schema.Field{{Name: "value", Type: schema.Type{Kind: schema.KindAny}, Optional: true}},
					Outputs: []schema.Field{{Name: "value", Type: schema.Type{Kind: schema.KindAny}}},
				}
				bin.Schema.Actions["undo"] = schema.Action{Idempotent: true, Inputs: []schema.Field{{Name: "value", Type: schema.Type{Kind: schema.KindAny}, Optional: true}}}
				agents[use.Name] = bin
			}
			if bin, ok := agents[use.Name]; ok && use.Plugin == "http" { // as the built-in agent
				bin.Schema.Config = append(slices.Clone(bin.Schema.Config), schema.Field{Name: "base_url", Type: schema.Type{Kind: schema.KindString}, Optional: true})
				agents[use.Name] = bin
			}
		}
		_, more := Link(mod, agents)
		if diags = append(diags, more...); diags.HasErrors() {
			t.Errorf("%v\n%s", diags.Err(), snippet)
		}
	}
}
