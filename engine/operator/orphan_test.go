package operator_test

import (
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A child run whose parent has ended is not retried: it may only be undone.
func TestNoRetryAfterTheEndOfTheParent(t *testing.T) {
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "kid" {
  step "w" {
    wait { signal = "go" }
  }
}
workflow "top" {
  step "v" { value = 1 }
}`)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	mem := memory.New(memory.Options{})
	defs := journal.NewDefinitions(mem, nil)
	ids, err := defs.Put(t.Context(), def)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mem.Join(t.Context(), "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := mem.OpenWriter(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	accept := func(workflow string, ev machine.Started, more ...machine.Event) {
		state, flow := machine.NewState(), def.Workflow(workflow)
		var records []machine.Record
		for _, ev := range append([]machine.Event{ev}, more...) {
			rec := machine.Decide(flow, state, machine.Input{At: time.Now(), Event: ev})
			state.Apply(rec)
			records = append(records, rec)
		}
		tr := store.Transition{
			Run: ev.RunID, At: state.Last(), Workflow: ids[workflow], State: state.Status(), Owner: &e, NextCheck: store.Never,
			Names: &naming.Names{Workflow: workflow, Name: ev.Name, Parent: ev.Parent},
		}
		if tr.Data, _, err = (journal.NewRow{Run: ev.RunID, At: tr.At, Records: records}).Encode(nil, &journal.Scratch{}); err != nil {
			t.Fatal(err)
		}
		if out, err := w.Commit(t.Context(), []store.Transition{tr}); err != nil || !out[0].Landed {
			t.Fatalf("commit: %+v, err = %v", out, err)
		}
	}
	lost := machine.EngineLost{Deaths: 3, Why: "3 engines ended"}
	accept("top", machine.Started{RunID: 1, Name: "over"})
	accept("kid", machine.Started{RunID: 2, Name: "open"})
	accept("kid", machine.Started{RunID: 3, Name: "alone"}, lost)
	accept("kid", machine.Started{RunID: 4, Name: "orphan", Parent: 1, ParentName: "over", ParentStep: "s"}, lost)
	accept("kid", machine.Started{RunID: 5, Name: "child", Parent: 2, ParentName: "open", ParentStep: "s"}, lost)

	op := &operator.Operator{Store: mem, Defs: defs}
	for run, refuses := range map[status.RunID]bool{3: false, 4: true, 5: false} {
		var refused *operator.RefusedError
		if err := op.Try(t.Context(), run, machine.RetryRequested{By: "ann"}); errors.As(err, &refused) != refuses || err != nil && !refuses {
			t.Errorf("run %d: err = %v, want a refusal: %t", run, err, refuses)
		}
		if err := op.Try(t.Context(), run, machine.CancelRequested{By: "ann"}); err != nil {
			t.Errorf("run %d: cancel: %v", run, err)
		}
	}
}
