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

// waits is a step that waits for the signal `go`.
const waits = `
step "w" {
  wait { signal = "go" }
}`

// linked returns the definition of workflow `top` with the given steps.
func linked(t *testing.T, steps string) *dsl.Definition {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte("workflow \"top\" {" + steps + "\n}")}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	return def
}

// waiting returns an operator and its store. In the store is run 1, in which one step waits for the
// signal `go`. No engine works on it.
func waiting(t *testing.T) (*operator.Operator, *memory.Store) {
	t.Helper()
	def := linked(t, waits)
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
	return &operator.Operator{Store: mem, Defs: defs}, mem
}

// full checks that the operator refuses a verb, because the inbox of run 1 has no room for it.
func full(t *testing.T, op *operator.Operator, verb machine.Event, want error, reason string) {
	t.Helper()
	_, err := op.Ask(t.Context(), 1, verb, "ann")
	var refused *operator.RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, naming.ErrInboxFull) || errors.Is(err, naming.ErrInboxBytes) != (want == naming.ErrInboxBytes) ||
		!strings.Contains(refused.Reason, reason) || !strings.Contains(refused.Reason, "`engine serve`") {
		t.Errorf("%T: err = %v, want %v with a refusal that says %q", verb, err, want, reason)
	}
}

// While no engine takes the messages of a run, the run gets a bounded number of signals. A person can
// still cancel it.
func TestSignalsDoNotFillTheInbox(t *testing.T) {
	op, mem := waiting(t)
	post := func(n int) {
		for range n {
			if _, err := mem.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb, By: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	signal, cancel := machine.SignalReceived{Name: "go", By: "ann"}, machine.CancelRequested{By: "ann"}
	post(9999)
	if _, err := op.Ask(t.Context(), 1, signal, "ann"); err != nil {
		t.Fatalf("signal 10,000: %v", err)
	}
	full(t, op, signal, naming.ErrInboxFull, "10000 messages or more wait for the run")
	if _, err := op.Ask(t.Context(), 1, cancel, "ann"); err != nil {
		t.Fatalf("cancel after 10,000 messages: %v", err)
	}
	post(999)
	full(t, op, cancel, naming.ErrInboxFull, "11000 messages or more wait for the run")
}

// While no engine takes the messages of a run, signals, and then other verbs, get a bounded number of
// bytes. A person can still cancel or pause the run.
func TestSignalsDoNotFillTheInboxWithBytes(t *testing.T) {
	op, mem := waiting(t)
	data := make([]byte, 1<<20)
	post := func(mib int) {
		for range mib {
			if _, err := mem.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb, By: "ann", Data: data}); err != nil {
				t.Fatal(err)
			}
		}
	}
	accepted := func(verb machine.Event) {
		t.Helper()
		if _, err := op.Ask(t.Context(), 1, verb, "ann"); err != nil {
			t.Errorf("%T: %v", verb, err)
		}
	}
	var (
		signal  = machine.SignalReceived{Name: "go", By: "ann"}
		deadend = machine.CancelRequested{By: "ann", NoCompensate: true, Reason: strings.Repeat("r", 1000)}
		pause   = machine.PauseRequested{By: "ann"}
	)
	next := linked(t, waits+"\nstep \"v\" { value = 1 }")
	ids, err := op.Defs.Put(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	other := machine.Migrated{Workflow: int32(ids["top"]), Digest: next.Digest(), By: "ann"}
	post(63)
	accepted(signal)
	post(1)
	full(t, op, signal, naming.ErrInboxBytes, "the messages that wait for the run and this one have more than 64 MiB together")
	accepted(other)
	accepted(deadend)
	post(8)
	full(t, op, other, naming.ErrInboxBytes, "the messages that wait for the run and this one have more than 72 MiB together")
	accepted(deadend)
	accepted(pause)
	post(100)
	accepted(machine.CancelRequested{By: "ann"})
}
