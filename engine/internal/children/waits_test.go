package children

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/sdk"
)

// A room under test has a store with runs of two workflows, and the orders that it was given.
type roomTest struct {
	*Waits
	t      *testing.T
	mem    *memory.Store
	parent *dsl.Workflow
	flow   store.WorkflowID
	engine store.EngineID
	w      store.Writer
	next   status.RunID
	orders []Order
	away   bool            // true = another engine has the children: the Waits are not notified of their ends
	reads  atomic.Int64    // number of reads of journals
	refuse error           // what Submit answers; nil = it submits
	met    store.Submitted // the run that Submit finds instead; zero = none
}

func newRoom(t *testing.T) *roomTest {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "kid" {
  step "v" { value = 1 }
}
workflow "top" {
  step "ship" { workflow = workflow.kid }
}`)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	r := &roomTest{t: t, mem: memory.New(memory.Options{}), parent: def.Workflow("top"), next: 100}
	defs := journal.NewDefinitions(r.mem, nil)
	ids, err := defs.Put(t.Context(), def)
	if err != nil {
		t.Fatal(err)
	}
	r.flow = ids["kid"]
	if r.engine, err = r.mem.Join(t.Context(), "test", time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	if r.w, err = r.mem.OpenWriter(t.Context(), r.engine, 0); err != nil {
		t.Fatal(err)
	}
	clk := &clock.Clock{}
	clk.Ticked(time.Now(), time.Now(), time.Hour)
	r.Waits = New(t.Context(), Config{
		Submit: r.submit, Store: store.Complete(counting{r.mem, &r.reads}), Defs: defs, Clock: clk, Outage: outage.New(slog.New(slog.DiscardHandler)), Poll: time.Millisecond,
	})
	return r
}

// A counting store counts the reads of journals.
type counting struct {
	*memory.Store
	n *atomic.Int64
}

// Load is a method of store.Store.
func (c counting) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	c.n.Add(1)
	return c.Store.Load(ctx, runs...)
}

func (r *roomTest) submit(_ context.Context, o Order) (store.Submitted, error) {
	r.orders = append(r.orders, o)
	if r.refuse != nil || r.met.Run != 0 {
		return r.met, r.refuse
	}
	return store.Submitted{Run: r.accept(o.Name, o.Parent, o.Void), Name: o.Name}, nil
}

// accept puts a run into the store, which ends at once.
func (r *roomTest) accept(name string, parent status.RunID, void bool) status.RunID {
	r.t.Helper()
	r.next++
	ev := machine.Started{RunID: r.next, Name: name, Trigger: "parent", Parent: parent, Void: void}
	rec := machine.Decide(r.parent.Steps[0].Child.Workflow, machine.NewState(), machine.Input{At: time.Now(), Event: ev})
	state, _ := rec.RunState()
	t := store.Transition{
		Run: r.next, At: rec.At(), Workflow: r.flow, State: state, Owner: &r.engine, NextCheck: store.Never,
		Names: &naming.Names{Workflow: "kid", Name: name, Parent: parent},
	}
	var err error
	if t.Data, _, err = (journal.NewRow{Run: r.next, At: t.At, Records: []machine.Record{rec}}).Encode(nil, &journal.Scratch{}); err != nil {
		r.t.Fatal(err)
	}
	out, err := r.w.Commit(r.t.Context(), []store.Transition{t})
	if err != nil || !out[0].Landed {
		r.t.Fatalf("commit: %+v, err = %v", out, err)
	}
	if !r.away {
		ended := machine.NewState()
		ended.Apply(rec)
		r.Ended(r.next, ended)
	}
	return r.next
}

// call makes a call of the parent and waits for the answer.
func (r *roomTest) call(purpose sdk.Purpose) sdk.Reply {
	r.t.Helper()
	e := &call.Spec{Run: 7, Name: "top-7", Flow: r.parent, Invoke: machine.Invoke{
		Attempt: machine.AttemptID{Call: 1}, Purpose: purpose, Agent: r.parent.ChildAgent(), IdempotencyKey: "key", CompleteBy: time.Now().Add(time.Hour),
	}}
	if purpose == sdk.PurposeUndo {
		e.Invoke.IdempotencyKey, e.Invoke.ForwardKey = "undo key", "key"
	}
	answer := make(chan sdk.Reply, 1)
	r.Start(e, func(reply sdk.Reply, _ status.Kept, err error) {
		if err != nil {
			r.t.Error(err)
		}
		answer <- reply
	})
	select {
	case reply := <-answer:
		return reply
	case <-time.After(time.Minute):
		r.t.Fatal("the call has no answer")
	}
	return sdk.Reply{}
}

func (r *roomTest) wantFailed(reply sdk.Reply, code, text string) {
	r.t.Helper()
	if reply.Outcome != sdk.OutcomeFailed || !reply.Permanent || reply.Code != code || !strings.Contains(reply.Message, text) {
		r.t.Errorf("got %+v, want the failure %s with %q", reply, code, text)
	}
}

// A call submits its child run under the name that follows from its key, and answers its outputs.
func TestCallSubmitsItsChild(t *testing.T) {
	r := newRoom(t)
	if reply := r.call(sdk.PurposeDo); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != "{}" {
		t.Errorf("got %+v, want the outputs of the child run", reply)
	}
	if o := r.orders[0]; len(r.orders) != 1 || o.Parent != 7 || o.ParentName != "top-7" || o.ParentStep != "ship" || o.Void || o.Name != naming.ChildName("top-7", "ship", "key") {
		t.Errorf("the orders are %+v", r.orders)
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d calls wait, want none", n)
	}
}

// If the child run ends in this engine, also while it is being submitted, the engine does not read it from
// the store.
func TestEndOfAChildOfThisEngineIsNotRead(t *testing.T) {
	r := newRoom(t)
	if reply := r.call(sdk.PurposeDo); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != "{}" {
		t.Errorf("got %+v, want the outputs of the child run", reply)
	}
	if n := r.reads.Load(); n != 0 {
		t.Errorf("%d reads of journals, want none", n)
	}
	if len(r.submitting) != 0 {
		t.Errorf("the Room still seeks %v", r.submitting)
	}
}

// If the child run ends in another engine, the Room finds the end in the store.
func TestEndOfAChildOfAnotherEngineIsRead(t *testing.T) {
	r := newRoom(t)
	r.away = true
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	if reply := r.call(sdk.PurposeDo); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != "{}" {
		t.Errorf("got %+v, want the outputs of the child run", reply)
	}
	if n := r.reads.Load(); n == 0 {
		t.Error("no read of the journal")
	}
	cancel()
	<-done
}

// A call that was sent before finds the child run again.
func TestCallFindsItsChildAgain(t *testing.T) {
	r := newRoom(t)
	name := naming.ChildName("top-7", "ship", "key")
	r.met = store.Submitted{Run: r.accept(name, 7, false), Name: name, Exists: true}
	if reply := r.call(sdk.PurposeDo); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("got %+v, want the outputs of the child run", reply)
	}
}

// A run with the name of the child, but with another parent, is not the child.
func TestNameOfAnotherRun(t *testing.T) {
	for _, parent := range []status.RunID{0, 8} {
		r := newRoom(t)
		name := naming.ChildName("top-7", "ship", "key")
		r.met = store.Submitted{Run: r.accept(name, parent, false), Name: name, Exists: true}
		r.wantFailed(r.call(sdk.PurposeDo), CodeNameTaken, name)
	}
}

// A child run whose unique key another run has, and one that is refused, fail for good.
func TestChildIsRefused(t *testing.T) {
	r := newRoom(t)
	r.met = store.Submitted{Run: 5, Name: "order-5", Exists: true}
	r.wantFailed(r.call(sdk.PurposeDo), CodeKeyTaken, "order-5")
	r = newRoom(t)
	r.refuse = &Refused{CodeRefused, errors.New("the variables are too large")}
	r.wantFailed(r.call(sdk.PurposeDo), CodeRefused, "too large")
}

// The undo of a child run that was never started leaves a run that begins nothing, so that a start
// that arrives late finds it.
func TestUndoOfAChildThatWasNeverStarted(t *testing.T) {
	r := newRoom(t)
	if reply := r.call(sdk.PurposeUndo); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("got %+v, want a result: nothing is left to undo", reply)
	}
	if len(r.orders) != 1 || !r.orders[0].Void {
		t.Errorf("the orders are %+v, want a run that begins nothing", r.orders)
	}
}

// How the child has ended here is used once: another engine may undo the child afterwards. The call for the
// undo finds this in the store.
func TestUndoOfAChildThatIsUndoneElsewhere(t *testing.T) {
	r := newRoom(t)
	name := naming.ChildName("top-7", "ship", "key")
	child := r.accept(name, 7, false)
	asked := make(chan struct{})
	go func() {
		// The Room hears late that the child has succeeded.
		for posted := []store.Message(nil); len(posted) == 0; {
			var err error
			if posted, err = r.mem.Messages(t.Context(), child, 0, 10); err != nil {
				t.Error(err)
				break
			}
		}
		r.Ended(child, r.state(child))
		r.undo(child)
		close(asked)
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { <-asked; r.Run(ctx); close(done) }()
	if reply := r.call(sdk.PurposeUndo); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("got %+v, want a result: the child is undone", reply)
	}
	cancel()
	<-done
}

// state returns the state of a run in the store.
func (r *roomTest) state(run status.RunID) *machine.State {
	r.t.Helper()
	story, err := journal.Load(r.t.Context(), r.mem, nil, r.cfg.Defs, run)
	if err != nil {
		r.t.Fatal(err)
	}
	return story.State
}

// undo commits the undo of a run, as another engine does.
func (r *roomTest) undo(run status.RunID) {
	r.t.Helper()
	story, err := journal.Load(r.t.Context(), r.mem, nil, r.cfg.Defs, run)
	if err != nil {
		r.t.Fatal(err)
	}
	rec := machine.Decide(story.Flow, story.State, machine.Input{At: time.Now(), Event: machine.CompensateRequested{Parent: true, By: "top-7"}})
	state, ok := rec.RunState()
	if !ok {
		r.t.Fatalf("the run is not undone: %+v", rec)
	}
	t := store.Transition{Run: run, Seq: 1, At: rec.At(), State: state, NextCheck: store.Never}
	if t.Data, _, err = (journal.NewRow{Run: run, Seq: 1, At: t.At, Before: story.Next(), Records: []machine.Record{rec}}).Encode(nil, &journal.Scratch{}); err != nil {
		r.t.Fatal(err)
	}
	out, err := r.w.Commit(r.t.Context(), []store.Transition{t})
	if err != nil || !out[0].Landed {
		r.t.Fatalf("commit: %+v, err = %v", out, err)
	}
}

// A store that does not answer delays the call; the next question to the store repeats it.
func TestStoreDoesNotAnswer(t *testing.T) {
	r := newRoom(t)
	r.refuse = errors.New("the store is away")
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	r.cfg.Submit = func(ctx context.Context, o Order) (store.Submitted, error) {
		if tries++; tries > 2 {
			r.refuse = nil
		}
		return r.submit(ctx, o)
	}
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	if reply := r.call(sdk.PurposeDo); reply.Outcome != sdk.OutcomeResult || tries != 3 {
		t.Errorf("got %+v after %d tries, want the outputs after 3", reply, tries)
	}
	cancel()
	<-done
}

// Forget ends all calls without an answer.
func TestForget(t *testing.T) {
	r := newRoom(t)
	r.refuse = errors.New("the store is away")
	ends := make(chan error, 1)
	r.Start(&call.Spec{Run: 7, Name: "top-7", Flow: r.parent, Invoke: machine.Invoke{Attempt: machine.AttemptID{Call: 1}, IdempotencyKey: "key", CompleteBy: time.Now().Add(time.Hour)}},
		func(_ sdk.Reply, _ status.Kept, err error) { ends <- err })
	r.Forget()
	if err := <-ends; !errors.Is(err, context.Canceled) || r.Waiting() != 0 {
		t.Errorf("err = %v and %d calls wait, want context.Canceled and none", err, r.Waiting())
	}
}
