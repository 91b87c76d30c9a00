// Package keyrace lets many clients race for one unique key, and checks their answers.
//
// In: the store under test. Out: the failures of a test. Each client submits runs, ends runs of its
// own and of others, resets the goal and asks for the state of the key. The tool porcupine then
// looks for an order of all these operations that explains each answer: an order in which the
// operations could have been made one after the other (I15). There is such an order only if at most
// one run of the key is open, and if a goal that was reached refuses all submissions until it is
// reset (I11). In races with replacements, clients also submit runs that wait until the key is
// free. Then there is such an order only if a run that waits starts after the run that had the key
// has ended, and if only the newest run that waits can start.
package keyrace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	rounds  = 4 // number of rounds that each client makes
	// If too few runs have had the key, the race proves nothing. Then more races follow, at most
	// `again` races. The number of clients in each of them is `few`. With many clients, a newer run
	// would replace a waiting run before the waiting run can start.
	few     = 4
	again   = 50
	engines = 8 // number of engines; each has one writer, which its clients share
	// giveUp is how long porcupine may search for an order. It usually needs less than a second.
	giveUp   = 2 * time.Minute
	workflow = "raced"
	key      = "order-1"
)

type kind int

const (
	submit kind = iota
	end         // ends a run: with success, or by a cancel
	reset
	look
	replace // submits a run that waits until the key is free
	admit   // starts a run that has waited for the key
)

// An ask is the input of an operation.
type ask struct {
	kind kind
	// In a `submit` or `replace`, the new run. In an `end` or `admit`, the run that has to end or
	// to start.
	run status.RunID
	to  status.RunState // in an `end`, the state in which the run has to end
}

// An answer is the output of an operation.
type answer struct {
	// After a `submit` or `replace`, the run that the store has named: the new run, or the run that
	// has the key or waits for it. After a `reset` or `look`, the run that took the key last. 0 =
	// there is none.
	run   status.RunID
	next  status.RunID // after a `look`, the open run that waits for the key; 0 = there is none
	done  bool         // the operation has changed the store
	state goals.State  // after a `reset` or `look`, the state of the key; "" = there is none, or the answer does not say it
}

// A keyContext is the state of the model: what a correct store knows about the key.
type keyContext struct {
	run   status.RunID // 0 = no run has had the key
	state status.RunState
	reset bool
	next  status.RunID // the open run that waits for the key; 0 = none
	// old holds the open runs that waited for the key until a newer one replaced them: their ids in
	// order, as text.
	old string
}

// now returns the state of the unique key, as package goals names it.
func (c keyContext) now(s naming.Scope) goals.State {
	at := c.own(s)
	if at == goals.Free && c.next != 0 {
		return goals.Open
	}
	return at
}

// own returns the state of the key, as if no run waited for it.
func (c keyContext) own(s naming.Scope) goals.State {
	if c.run == 0 {
		return ""
	}
	switch {
	case !c.state.Final():
		return goals.Open
	case c.reset || s == naming.ScopeActive || s == naming.ScopeGoal && c.state != status.RunSucceeded:
		return goals.Free
	case c.state == status.RunSucceeded:
		return goals.Reached
	}
	return goals.Used
}

// outdated returns a context with one more run in the field `old`: a run that waited and was
// replaced.
func (c keyContext) outdated(run status.RunID) keyContext {
	all := append(strings.Fields(c.old), strconv.FormatInt(int64(run), 10))
	slices.Sort(all)
	c.old = strings.Join(all, " ")
	return c
}

// ended returns a context in which the given run is not in the field `old` any more, because it has
// ended. ok is false if the run was not in the field `old`.
func (c keyContext) ended(run status.RunID) (next keyContext, ok bool) {
	all := strings.Fields(c.old)
	i := slices.Index(all, strconv.FormatInt(int64(run), 10))
	if i < 0 {
		return c, false
	}
	c.old = strings.Join(slices.Delete(all, i, i+1), " ")
	return c, true
}

// step is the model of a correct store. The first result says whether the store may give the answer
// `out` to the operation `in`, if its state is c. The second result is the state after the
// operation.
func (c keyContext) step(s naming.Scope, in ask, out answer) (bool, keyContext) {
	at := c.now(s)
	switch in.kind {
	case submit:
		return c.submitted(s, in, out)
	case replace:
		return c.replaced(s, in, out)
	case admit:
		if own := c.own(s); own == goals.Free && c.next == in.run {
			return out.done, keyContext{run: in.run, state: status.RunRunning, old: c.old}
		}
		return !out.done, c
	case end:
		to, open := c.finished(in)
		return out.done == open, to
	case reset:
		if at == goals.Reached && s != naming.ScopeEver {
			to := c
			to.reset = true
			return out.done && out.run == c.run, to
		}
		return !out.done && out.run == c.run && out.state == at, c
	}
	return out.run == c.run && out.state == at && out.next == c.next, c
}

// submitted does the work of the method `step` for an ordinary submission.
func (c keyContext) submitted(s naming.Scope, in ask, out answer) (bool, keyContext) {
	own := c.own(s)
	switch {
	case own != "" && own != goals.Free:
		return !out.done && out.run == c.run, c
	case c.next != 0:
		return !out.done && out.run == c.next, c
	}
	return out.done && out.run == in.run, keyContext{run: in.run, state: status.RunRunning, old: c.old}
}

// replaced does the work of the method `step` for a submission whose run waits for the key.
func (c keyContext) replaced(s naming.Scope, in ask, out answer) (bool, keyContext) {
	switch own := c.own(s); {
	case (own == "" || own == goals.Free) && c.next == 0:
		return !out.done && out.run == 0, c
	case own == goals.Reached || own == goals.Used:
		return !out.done && out.run == c.run, c
	}
	to := c
	if c.next != 0 {
		to = c.outdated(c.next)
	}
	to.next = in.run
	return out.done && out.run == in.run, to
}

// finished returns the context after the end of the run in.run. The second result is true if this
// run was open before.
func (c keyContext) finished(in ask) (to keyContext, open bool) {
	to = c
	switch {
	case c.run == in.run && !c.state.Final():
		to.state = in.to
		return to, true
	case c.next == in.run:
		to.next = 0
		return to, true
	}
	return c.ended(in.run)
}

// A client makes one operation after the other.
type client struct {
	t        *testing.T
	store    store.Store
	goals    goals.Keeper
	mu       *sync.Mutex // protects the field `writer`
	writer   store.Writer
	owner    store.EngineID
	flow     store.WorkflowID
	keyScope naming.KeyScope
	ids      *naming.RunIDSource
	began    time.Time
	number   int
	made     []porcupine.Operation
	// waiting holds the runs that any client has submitted to wait for the key. Only the client
	// that submitted such a run ends it.
	waiting *sync.Map
	proof   *proof
}

// A proof counts what all clients have reached together.
type proof struct {
	// landed is the number of runs that got the key immediately. admitted is the number of runs
	// that waited for the key and got it.
	landed, admitted atomic.Int64
	replacing        bool
	once             bool // the scope of the key is `ever`, so at most one run gets the key
}

// enough reports whether enough runs have had the key.
func (p *proof) enough() bool {
	switch landed := p.landed.Load(); {
	case p.once:
		return landed == 1
	case landed < 10:
		return false
	}
	return !p.replacing || p.admitted.Load() > 5
}

// commit commits one transition. The second result is the time at which the operation began. This
// is the time at which the writer became free, and not the time of the call.
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

// submit submits a run, and returns the run that has the key or waits for it. It returns 0 after an
// error.
func (c *client) submit(ctx context.Context) status.RunID {
	run, err := c.ids.Next(time.Now())
	if err != nil {
		c.t.Error(err)
		return 0
	}
	o, called := c.commit(ctx, store.Transition{
		Run: run, At: time.Now(), Workflow: c.flow, State: status.RunRunning, Owner: &c.owner, NextCheck: store.Never, Data: []byte{1},
		Names: &naming.Names{Workflow: workflow, Key: key, KeyScope: c.keyScope},
	})
	if o.Err != nil {
		c.t.Errorf("submit: %v", o.Err)
		return 0
	}
	c.note(ask{kind: submit, run: run}, answer{run: o.Submitted.Run, done: !o.Submitted.Exists}, called)
	if !o.Submitted.Exists {
		c.proof.landed.Add(1)
	}
	return o.Submitted.Run
}

// replace submits a run that waits until the key is free, and tries to start the run. Then it ends
// the run, whether the run has started or not. If the store does not accept the run, replace only
// records the answer.
func (c *client) replace(ctx context.Context, to status.RunState) {
	run, err := c.ids.Next(time.Now())
	if err != nil {
		c.t.Error(err)
		return
	}
	c.waiting.Store(run, true)
	o, called := c.commit(ctx, store.Transition{
		Run: run, At: time.Now(), Workflow: c.flow, State: status.RunQueued, Owner: &c.owner, NextCheck: store.Never, Data: []byte{1},
		Names:    &naming.Names{Workflow: workflow, Key: key, KeyScope: c.keyScope},
		Replaces: &store.Message{Kind: store.MessageVerb, By: "client", Dedup: "replaced", Data: []byte{1}},
	})
	if o.Err != nil && !errors.Is(o.Err, naming.ErrFree) {
		c.t.Errorf("replace: %v", o.Err)
		return
	}
	c.note(ask{kind: replace, run: run}, answer{run: o.Submitted.Run, done: o.Landed}, called)
	if !o.Landed {
		return
	}
	for range 3 {
		o, called := c.commit(ctx, store.Transition{Run: run, Seq: 1, At: time.Now(), State: status.RunRunning, Admit: true, NextCheck: store.Never, Data: []byte{2}})
		if o.Err != nil && !errors.Is(o.Err, naming.ErrFull) {
			c.t.Errorf("admit run %d: %v", run, o.Err)
		}
		c.note(ask{kind: admit, run: run}, answer{done: o.Landed}, called)
		if o.Landed {
			c.proof.admitted.Add(1)
			c.end(ctx, run, 2, to)
			return
		}
		c.look(ctx)
		c.other(ctx, c.submit(ctx), status.RunCancelled)
	}
	c.end(ctx, run, 1, status.RunCancelled)
}

// other ends the run that has the key. It does nothing if this run is one of the runs that waited
// for the key. Such a run is ended by the client that submitted it.
func (c *client) other(ctx context.Context, run status.RunID, to status.RunState) {
	if _, waited := c.waiting.Load(run); run != 0 && !waited {
		c.end(ctx, run, 1, to)
	}
}

// end tries to end a run. The parameter `seq` is the number of the run's next row.
func (c *client) end(ctx context.Context, run status.RunID, seq int32, to status.RunState) {
	o, called := c.commit(ctx, store.Transition{Run: run, Seq: seq, At: time.Now(), State: to, NextCheck: store.Never, Data: []byte{2}})
	if o.Err != nil && !errors.Is(o.Err, store.ErrStale) {
		c.t.Errorf("end run %d: %v", run, o.Err)
	}
	c.note(ask{kind: end, run: run, to: to}, answer{done: o.Landed}, called)
}

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

func (c *client) look(ctx context.Context) {
	called := time.Since(c.began).Nanoseconds()
	g, err := goals.Find(ctx, c.store, workflow, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.t.Errorf("look: %v", err)
	}
	c.note(ask{kind: look}, answer{run: g.Run, next: g.Next, state: g.State}, called)
}

// race makes the operations of one client.
func (c *client) race(ctx context.Context, chance *rand.Rand) {
	for range rounds {
		if c.proof.replacing && chance.IntN(3) == 0 {
			c.replace(ctx, []status.RunState{status.RunSucceeded, status.RunCancelled}[chance.IntN(2)])
		}
		run := c.submit(ctx)
		switch n := chance.IntN(10); {
		case run == 0:
			return
		case n < 3:
			c.other(ctx, run, status.RunSucceeded)
		case n < 6:
			c.other(ctx, run, status.RunCancelled)
		case n < 8:
			c.look(ctx)
		}
		if chance.IntN(4) == 0 {
			c.reset(ctx)
		}
	}
}

// Run lets a number of clients race for one key of the store, and checks all their answers. If
// `replacing` is true, some of their runs wait until the key is free. The store must be empty.
func Run(t *testing.T, s store.Store, scope naming.Scope, clients int, replacing bool) {
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
	ids, began, waiting := &naming.RunIDSource{}, time.Now(), &sync.Map{}
	had := &proof{replacing: replacing, once: scope == naming.ScopeEver}
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
			all[n] = &client{t: t, store: s, goals: role, mu: mu, writer: w, owner: id, flow: flows[workflow], keyScope: naming.KeyScope{Scope: scope}, ids: ids, began: began, number: n, waiting: waiting, proof: had}
		}
	}
	var racing sync.WaitGroup
	for n, c := range all {
		racing.Go(func() { c.race(ctx, rand.New(rand.NewPCG(uint64(n), 27))) })
	}
	racing.Wait()
	for n := 0; n < again && !had.enough(); n++ {
		for i, c := range all[:few] {
			racing.Go(func() { c.race(ctx, rand.New(rand.NewPCG(uint64(clients+n*few+i), 27))) })
		}
		racing.Wait()
	}
	var history []porcupine.Operation
	for _, c := range all {
		history = append(history, c.made...)
	}
	if !had.enough() {
		t.Errorf("%d runs have had the key, and %d have waited for it and got it: the race proves nothing", had.landed.Load(), had.admitted.Load())
	}
	if got := Check(scope, history); got != porcupine.Ok {
		t.Errorf("%d operations: porcupine says %s, want an order that explains all answers. The longest order ends so:\n%s", len(history), got, explain(scope, history))
	}
}

// Check searches for an order of the operations that explains all answers.
func Check(scope naming.Scope, history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(scope), history, giveUp)
}

func model(scope naming.Scope) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return keyContext{} },
		Step: func(state, in, out any) (bool, any) {
			ok, next := state.(keyContext).step(scope, in.(ask), out.(answer))
			return ok, next
		},
	}
}
