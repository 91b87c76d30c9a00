package journal

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/schedules"
)

const givenFlow = `
variable "region" { type = string }
variable "list" { type = list(string) }
workflow "w" {
  deadline = "1h"
  variable "tenant" { type = string }
  step "a" { value = var.tenant }
}`

func givenWorkflow(t *testing.T) (*dsl.Workflow, dsl.Value) {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(givenFlow)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	wf := def.Workflow("w")
	vars, diags := wf.Bind([]dsl.Assignment{{Name: "region", Text: "canary ${x}"}, {Name: "list", Text: `["a \\ \"b\""]`}, {Name: "tenant", Text: "demo"}})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	return wf, vars
}

// The variables outside of workflows come back as they were, sealed for their workflow.
func TestGiven(t *testing.T) {
	wf, vars := givenWorkflow(t)
	sealer := sealerOf(t, crypt.Key{1})
	data, err := EncodeGiven(sealer, wf, vars)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("canary")) {
		t.Error("a value stands in the stored bytes")
	}
	given, err := DecodeGiven(sealer, wf, data)
	if err != nil || len(given) != 2 {
		t.Fatalf("DecodeGiven = %+v, %v, want the two variables outside of the workflow", given, err)
	}
	again, diags := wf.Bind(append(given, dsl.Assignment{Name: "tenant", Text: "demo"}))
	if diags.HasErrors() || !again.Equal(vars) {
		t.Errorf("variables = %s, %v, want %s", again.JSON(), diags.Err(), vars.JSON())
	}
	if _, err := DecodeGiven(sealer, &dsl.Workflow{Name: "x"}, data); err == nil {
		t.Error("bytes of another workflow can be opened")
	}
	if _, err := DecodeGiven(nil, wf, data); err == nil {
		t.Error("sealed bytes can be read without a key")
	}
}

// A rotation of the key seals the variables of published workflows again.
func TestResealGiven(t *testing.T) {
	wf, vars := givenWorkflow(t)
	st := memory.New(memory.Options{})
	older, both := sealerOf(t, crypt.Key{1}), sealerOf(t, crypt.Key{2}, crypt.Key{1})
	data, err := EncodeGiven(older, wf, vars)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Publish(t.Context(), schedules.Workflow{Name: "w", ID: 1, Given: data}, nil); err != nil {
		t.Fatal(err)
	}
	uses, err := CountKeys(t.Context(), store.Complete(st), both)
	if err != nil || uses[1].Settings != 1 {
		t.Fatalf("CountKeys = %+v, %v, want one setting of the older key", uses, err)
	}
	if _, err := Reseal(t.Context(), store.Complete(st), both); err != nil {
		t.Fatal(err)
	}
	list, err := st.Published(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := DecodeGiven(sealerOf(t, crypt.Key{2}), wf, list[0].Given); err != nil {
		t.Errorf("with the newest key alone: %v", err)
	}
}
