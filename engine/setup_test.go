package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
)

// What tests of engines begin with: a run in some plight, and whoever speaks to it.

// under starts an engine with a run of which the named call does not answer.
func (w *world) under(call string) (*testNode, status.RunID) {
	w.t.Helper()
	w.shop.on(call, block)
	n := w.start()
	run := w.submit(n, "order", nil)
	time.Sleep(time.Second)
	return n, run
}

// records returns the records in a run's journal.
func (w *world) records(run status.RunID) []machine.Record {
	w.t.Helper()
	story, err := journal.Load(context.WithoutCancel(w.t.Context()), w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
	if err != nil {
		w.t.Fatal(err)
	}
	return story.Records
}

// operator returns somebody who speaks to the world's runs from outside.
func (w *world) operator() *operator.Operator {
	return &operator.Operator{Store: w.mem, Sealer: w.sealer(), Defs: journal.NewDefinitions(w.mem, w.sealer())}
}

// post puts an event into a run's inbox as it is.
func (w *world) post(run status.RunID, kind store.MessageKind, e machine.Event, at time.Time) store.MessageID {
	w.t.Helper()
	data, err := journal.EncodeMessage(w.sealer(), run, e)
	if err != nil {
		w.t.Fatal(err)
	}
	id, err := w.mem.Post(w.t.Context(), store.Message{Run: run, Kind: kind, At: at, By: "test", Data: data})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// empty checks that nothing waits in a run's inbox.
func (w *world) empty(run status.RunID) {
	w.t.Helper()
	if left, err := w.mem.Messages(w.t.Context(), run, 0, 100); err != nil || len(left) > 0 {
		w.t.Errorf("inbox = %+v, %v, want it empty", left, err)
	}
}

// block answers when the call is given up.
func block(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }

// poor starts an engine that has no agents.
func (w *world) poor() *testNode {
	w.t.Helper()
	defer func(cfg func(*engine.Config)) { w.cfg = cfg }(w.cfg)
	w.cfg = func(c *engine.Config) { c.Invoker = poorly{w.inv, func(string) bool { return true }} }
	return w.start()
}

// ask says a verb and waits for the answer.
func (w *world) ask(run status.RunID, verb machine.Event) error {
	w.t.Helper()
	op := w.operator()
	id, err := op.Ask(w.t.Context(), run, verb, "ann")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	return op.Answer(ctx, run, id)
}

// queued returns a run that waits for any engine.
func (w *world) queued() status.RunID {
	w.t.Helper()
	s, err := engine.Enqueue(w.t.Context(), engine.Config{Store: w.mem}, engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Run
}

// orphaned returns a run of an engine that died when the named call had done as
// the script says.
func (w *world) orphaned(state status.RunState, name string, f script) status.RunID {
	w.t.Helper()
	w.shop.on(name, f)
	n := w.start()
	run := w.submit(n, "order", nil)
	if state.NeedsHuman() {
		w.wait(n, run, state)
	}
	time.Sleep(time.Second)
	n.kill(w.t)
	return run
}

func newKey(t *testing.T) crypt.Key {
	t.Helper()
	k, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newSealer(t *testing.T, keys ...crypt.Key) crypt.Sealer {
	t.Helper()
	s, err := crypt.NewSealer(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
