package dsl

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/functions"
)

// A definition that was stored before the rule is still read, and its agent
// keeps the list that it was stored with.
func TestDecodeReservedEnv(t *testing.T) {
	src := []byte(`
agent "mock" {
  env = ["ENGINE_DSN", "HOME"]
}
workflow "w" {
  deadline = "1h"
  step "s" {
    action = agent.mock.call
    input { value = "${env("PGHOST")}" }
  }
}
`)
	host := "db"
	answers := functions.Reads{Files: map[string]string{}, Env: map[string]*string{"PGHOST": &host}}
	m, diags := decl.ParseStored(decl.Stored{Files: map[string][]byte{"a.hcl": src}, Reads: answers}, true)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def := &Definition{module: m}
	if err := def.seal(usedAgents(&Module{m})); err != nil {
		t.Fatal(err)
	}
	if now, diags := Parse(archiveFS(&txtar.Archive{Files: []txtar.File{{Name: "a.hcl", Data: src}}}), ParseOptions{}); !diags.HasErrors() {
		t.Fatalf("today's rules take it: %v", now.Workflows())
	}
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	wf := back.Workflow("w")
	in, err := wf.Steps[0].Input(&Scope{})
	if err != nil || string(in.JSON()) != `{"value":"db"}` {
		t.Errorf("input %s, %v", in.JSON(), err)
	}
	if env := wf.Agents["mock"].Env; len(env) != 2 {
		t.Errorf("env %v", env)
	}
}
