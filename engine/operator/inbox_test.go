package operator_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
)

// While no engine takes the messages of a run, the run gets a bounded number of signals. A person can
// still cancel it.
func TestSignalsDoNotFillTheInbox(t *testing.T) {
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "top" {
  step "w" {
    wait { signal = "go" }
  }
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
	state := machine.NewState()
	rec := machine.Decide(def.Workflow("top"), state, machine.Input{At: time.Now(), Event: machine.Started{RunID: 1, Name: "o-1"}})
	state.Apply(rec)
	tr := store.Transition{
		Run: 1, At: state.Last(), Workflow: ids["top"], State: state.Status(), Owner: &e, NextCheck: store.Never,
		Names: &naming.Names{Workflow: "top", Name: "o-1"},
	}
	if tr.Data, _, err = (journal.NewRow{Run: 1, At: tr.At, Records: []machine.Record{rec}}).Encode(nil, &journal.Scratch{}); err != nil {
		t.Fatal(err)
	}
	if out, err := w.Commit(t.Context(), []store.Transition{tr}); err != nil || !out[0].Landed {
		t.Fatalf("commit: %+v, err = %v", out, err)
	}
	op := &operator.Operator{Store: mem, Defs: defs}
	post := func(n int) {
		for range n {
			if _, err := mem.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb, By: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	full := func(verb machine.Event, reason string) {
		t.Helper()
		_, err := op.Ask(t.Context(), 1, verb, "ann")
		var refused *operator.RefusedError
		if !errors.As(err, &refused) || !errors.Is(err, naming.ErrInboxFull) || !strings.Contains(refused.Reason, reason) {
			t.Errorf("%T: err = %v, want a refusal that says %q", verb, err, reason)
		}
	}
	signal, cancel := machine.SignalReceived{Name: "go", By: "ann"}, machine.CancelRequested{By: "ann"}
	post(9999)
	if _, err := op.Ask(t.Context(), 1, signal, "ann"); err != nil {
		t.Fatalf("signal 10,000: %v", err)
	}
	full(signal, "10000 messages or more wait for the run")
	if _, err := op.Ask(t.Context(), 1, cancel, "ann"); err != nil {
		t.Fatalf("cancel after 10,000 messages: %v", err)
	}
	post(999)
	full(cancel, "11000 messages or more wait for the run")
}
