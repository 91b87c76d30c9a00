// Package keyrace lets many clients race for one unique key, and checks their answers.
//
// In: the store under test. Out: the failures of a test. Each client submits runs, ends runs of its
// own and of others, resets the goal and asks for the state of the key. The tool porcupine then looks
// for an order of all these operations that explains each answer: an order in which the operations
// could have been made one after the other (I15). There is such an order only if at most one run of
// the key is open, and if a goal that was reached refuses all submissions until it is reset (I11).
package keyrace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	clients = 200
	rounds  = 4 // of operations of each client
	engines = 8 // each has one writer, which its clients share
	// giveUp is how long porcupine may search for an order. It usually needs less than a second.
	giveUp   = 2 * time.Minute
	workflow = "raced"
	key      = "order-1"
)

// A kind is a kind of operation.
type kind int

const (
	submit kind = iota
	end         // ends a run: with success, or by a cancel
	reset
	look
)

// An ask is the input of an operation.
type ask struct {
	kind kind
	run  status.RunID    // submit: id of the new run; end: the run that has to end
	to   status.RunState // end: state in which the run has to end
}

// An answer is the output of an operation.
type answer struct {
	run   status.RunID // submit: run that has the key; reset and look: run of the context; 0 = there is none
	done  bool         // the operation has changed the store
	state goals.State  // reset and look: state of the context, as far as the answer says it; "" = none
}

// A keyContext is the state of the model: what the store has to keep of the key.
type keyContext struct {
	run   status.RunID // 0 = no run has had the key
	state status.RunState
	reset bool
}

// now returns the state of a context.
func (c keyContext) now(s naming.Scope) goals.State {
	if c.run == 0 {
		return ""
	}
	g := goals.Goal{RunState: c.state, Hold: naming.Hold{Scope: s}}
	switch {
	case !c.state.Final():
		return goals.Open
	case c.reset || s == naming.ScopeActive || s == naming.ScopeGoal && g.RunState != status.RunSucceeded:
		return goals.Free
	case c.state == status.RunSucceeded:
		return goals.Reached
	}
	return goals.Used
}

// step is the model: it says whether the store may give the answer in this state, and what the state
// is afterwards.
func (c keyContext) step(s naming.Scope, in ask, out answer) (bool, keyContext) {
	at := c.now(s)
	free := at == "" || at == goals.Free
	switch in.kind {
	case submit:
		if free {
			return out.done && out.run == in.run, keyContext{run: in.run, state: status.RunRunning}
		}
		return !out.done && out.run == c.run, c
	case end:
		if c.run == in.run && !c.state.Final() {
			return out.done, keyContext{run: c.run, state: in.to}
		}
		return !out.done, c
	case reset:
		if at == goals.Reached && s != naming.ScopeEver {
			return out.done && out.run == c.run, keyContext{run: c.run, state: c.state, reset: true}
		}
		return !out.done && out.run == c.run && out.state == at, c
	}
	return out.run == c.run && out.state == at, c
}

// A client makes one operation after the other.
type client struct {
	t      *testing.T
	store  store.Store
	goals  goals.Keeper
	mu     *sync.Mutex // protects writer
	writer store.Writer
	owner  store.EngineID
	flow   store.WorkflowID
	hold   naming.Hold
	ids    *naming.RunIDSource
	began  time.Time
	number int
	made   []porcupine.Operation
}

// commit commits one transition. The call of the operation begins when the writer is free.
func (c *client) commit(ctx context.Context, t store.Transition) (store.Outcome, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	called := time.Since(c.began).Nanoseconds()
	out, err := c.writer.Commit(ctx, []store.Transition{t})
	if err != nil {
		c.t.Errorf("commit: %v", err)
		return store.Outcome{Err: err}, called
	}
	return out[0], called
}

// note keeps an operation for porcupine.
func (c *client) note(in ask, out answer, called int64) {
	c.made = append(c.made, porcupine.Operation{ClientId: c.number, Input: in, Output: out, Call: called, Return: time.Since(c.began).Nanoseconds()})
}

// submit submits a run, and returns the run that has the key.
func (c *client) submit(ctx context.Context) status.RunID {
	run, err := c.ids.Next(time.Now())
	if err != nil {
		c.t.Error(err)
		return 0
	}
	o, called := c.commit(ctx, store.Transition{
		Run: run, At: time.Now(), Workflow: c.flow, State: status.RunRunning, Owner: &c.owner, NextCheck: store.Never, Data: []byte{1},
		Names: &naming.Names{Workflow: workflow, Key: key, Hold: c.hold},
	})
	if o.Err != nil {
		c.t.Errorf("submit: %v", o.Err)
		return 0
	}
	c.note(ask{kind: submit, run: run}, answer{run: o.Submitted.Run, done: !o.Submitted.Exists}, called)
	return o.Submitted.Run
}

// end tries to end a run.
func (c *client) end(ctx context.Context, run status.RunID, to status.RunState) {
	o, called := c.commit(ctx, store.Transition{Run: run, Seq: 1, At: time.Now(), State: to, NextCheck: store.Never, Data: []byte{2}})
	if o.Err != nil && !errors.Is(o.Err, store.ErrStale) {
		c.t.Errorf("end run %d: %v", run, o.Err)
	}
	c.note(ask{kind: end, run: run, to: to}, answer{done: o.Landed}, called)
}

// reset tries to reset the goal.
func (c *client) reset(ctx context.Context) {
	called := time.Since(c.began).Nanoseconds()
	g, err := c.goals.ResetGoal(ctx, goals.Reset{Workflow: workflow, Key: key, By: "client", Reason: "race"})
	out := answer{run: g.Run, done: err == nil}
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
	case errors.Is(err, goals.ErrOpen), errors.Is(err, goals.ErrNotReached), errors.Is(err, goals.ErrEver):
		out.state = g.State
	default:
		c.t.Errorf("reset: %v", err)
	}
	c.note(ask{kind: reset}, out, called)
}

// look asks for the state of the key.
func (c *client) look(ctx context.Context) {
	called := time.Since(c.began).Nanoseconds()
	g, err := goals.Find(ctx, c.store, workflow, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.t.Errorf("look: %v", err)
	}
	c.note(ask{kind: look}, answer{run: g.Run, state: g.State}, called)
}

// race makes the operations of one client.
func (c *client) race(ctx context.Context, chance *rand.Rand) {
	for range rounds {
		run := c.submit(ctx)
		switch n := chance.IntN(10); {
		case run == 0:
			return
		case n < 3:
			c.end(ctx, run, status.RunSucceeded)
		case n < 6:
			c.end(ctx, run, status.RunCancelled)
		case n < 8:
			c.look(ctx)
		}
		if chance.IntN(4) == 0 {
			c.reset(ctx)
		}
	}
}

// Run lets the clients race for one key of the store, and checks all their answers. The store must be
// empty.
func Run(t *testing.T, s store.Store, scope naming.Scope) {
	t.Helper()
	ctx := t.Context()
	role, ok := goals.Of(s)
	if !ok {
		t.Fatal("the store does not keep goals")
	}
	flows, err := s.PutDefinition(ctx, store.Definition{Digest: "raced", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: workflow, Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*client, clients)
	ids, began := &naming.RunIDSource{}, time.Now()
	for e := range engines {
		id, err := s.Join(ctx, fmt.Sprint("engine ", e), time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.OpenWriter(ctx, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Errorf("close a writer: %v", err)
			}
		})
		mu := &sync.Mutex{}
		for n := e; n < clients; n += engines {
			all[n] = &client{t: t, store: s, goals: role, mu: mu, writer: w, owner: id, flow: flows[workflow], hold: naming.Hold{Scope: scope}, ids: ids, began: began, number: n}
		}
	}
	var racing sync.WaitGroup
	for n, c := range all {
		racing.Go(func() { c.race(ctx, rand.New(rand.NewPCG(uint64(n), 27))) })
	}
	racing.Wait()
	var history []porcupine.Operation
	landed := 0
	for _, c := range all {
		history = append(history, c.made...)
		for _, op := range c.made {
			if op.Input.(ask).kind == submit && op.Output.(answer).done {
				landed++
			}
		}
	}
	if most := scope == naming.ScopeEver; landed == 0 || most && landed != 1 || !most && landed < 10 {
		t.Errorf("%d runs have had the key: the race proves nothing", landed)
	}
	if got := Check(scope, history); got != porcupine.Ok {
		t.Errorf("%d operations: porcupine says %s, want an order that explains all answers", len(history), got)
	}
}

// Check searches for an order of the operations that explains all answers.
func Check(scope naming.Scope, history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return keyContext{} },
		Step: func(state, in, out any) (bool, any) {
			ok, next := state.(keyContext).step(scope, in.(ask), out.(answer))
			return ok, next
		},
	}, history, giveUp)
}
