// Package storetest holds the rules that every store.Store obeys, as test cases. Each case
// says why its rule exists: most of them prevent a fault that has happened. The test of a
// store calls Run.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Harness is an empty store under test, with functions that only a test may use. Required
// are Store, Expire, Lose and LoseFenced.
type Harness struct {
	Store store.Store
	// Other is a second handle of the same data, like that of another process; nil = Store.
	Other store.Store
	// Expire makes a member's lease expire.
	Expire func(t *testing.T, id store.EngineID)
	// Lose cuts the next batch or submission that any writer of Store sends. With landed
	// true the reply is lost after the commit. With landed false the request is lost before
	// it.
	Lose func(t *testing.T, landed bool)
	// LoseFenced is like Lose. In addition, the writer's engine is declared dead before the
	// writer can ask again.
	LoseFenced func(t *testing.T, id store.EngineID, landed bool)
	// Hold blocks every client that appends row seq of a run, until the function release is
	// called. The function wait returns when n clients are blocked. Hold is nil if commits
	// run one at a time in one process: then a test cannot see a commit in flight.
	Hold func(t *testing.T, run status.RunID, seq int32) (wait func(n int), release func())
	// Cut breaks the connections of Store's writers now. The server continues with the
	// requests that it has received. Cut is nil if Hold is nil.
	Cut func(t *testing.T)
	// Read opens a reading transaction, and returns a function that ends it. Read is nil if
	// the store reads without a transaction that stays open.
	Read func(t *testing.T) (end func())
}

// A rule is one case of the suite.
type rule struct {
	name string
	why  string
	run  func(w *world)
	need func(h Harness) bool // reports whether the rule applies to the store; nil = always
}

// Run tests a store against every rule. The function open returns an empty store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	var rules []rule
	for _, part := range [][]rule{commitRules, unknownRules, ownerRules, memberRules, submitRules, batchRules, viewRules, readRules, inboxRules, consumedRules, heardRules, passRules, retainRules, filterRules,
		needed(hasHands, handRules), needed(hasEvidence, evidenceRules)} {
		rules = append(rules, part...)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			h := open(t)
			if r.need != nil && !r.need(h) {
				return // the rule needs a property that this kind of store does not have
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the rule: %s", r.why)
				}
			})
			r.run(newWorld(t, h))
		})
	}
}

// A world is the argument of a case: a frame, and helpers for the parts of the contract.
type world struct {
	*frame
	letters
	suspects
	aged
}

// A frame holds a store with one definition, and the helpers that all cases need.
type frame struct {
	*testing.T
	Harness
	Store, Other store.Full      // Store and Other of the Harness, after store.Complete
	ctx          context.Context // context of the case
	flow         store.WorkflowID
	runs         status.RunID
}

const (
	flowName = "order"
	digest   = "d1"
)

var stepNames = []string{"reserve", "charge", "ship"}

// base is a time that every store keeps exactly: it has whole microseconds.
var base = time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC)

func newWorld(t *testing.T, h Harness) *world {
	t.Helper()
	if h.Other == nil {
		h.Other = h.Store
	}
	w := &frame{T: t, Harness: h, Store: store.Complete(h.Store), Other: store.Complete(h.Other), ctx: t.Context(), runs: 1 << 40}
	ids, err := h.Store.PutDefinition(w.ctx, store.Definition{
		Digest:    digest,
		Data:      []byte("definition"),
		Workflows: []store.DefinedWorkflow{{Name: flowName, Steps: stepNames}, {Name: "other", Steps: []string{"only"}}},
	})
	if err != nil {
		t.Fatalf("put definition: %v", err)
	}
	w.flow = ids[flowName]
	l := letters{w}
	return &world{frame: w, letters: l, suspects: suspects{w}, aged: aged{l}}
}

// An actor is an engine with its writers.
type actor struct {
	id      store.EngineID
	writers []store.Writer
}

// join starts an engine on a store.
func (w *frame) join(s store.Store, writers int) actor {
	w.Helper()
	id, err := s.Join(w.ctx, "test", time.Hour, writers)
	if err != nil {
		w.Fatalf("join: %v", err)
	}
	a := actor{id: id}
	for n := range writers {
		wr, err := s.OpenWriter(w.ctx, id, n)
		if err != nil {
			w.Fatalf("open writer %d: %v", n, err)
		}
		w.Cleanup(func() {
			if err := wr.Close(); err != nil {
				w.Errorf("close writer: %v", err)
			}
		})
		a.writers = append(a.writers, wr)
	}
	return a
}

// create returns the first transition of a new run. The run belongs to the given actor.
func (w *frame) create(a actor) store.Transition {
	w.runs++
	return store.Transition{
		Run: w.runs, At: base, Workflow: w.flow, State: status.RunRunning,
		Owner: &a.id, NextCheck: base.Add(time.Hour), Data: []byte{1, 2, 3},
	}
}

// next returns a transition that adds a row to the journal and changes nothing else.
func next(run status.RunID, seq int32) store.Transition {
	return store.Transition{Run: run, Seq: seq, At: base.Add(time.Duration(seq) * time.Second), Data: []byte{byte(seq)}}
}

// end returns a transition that ends a run.
func end(run status.RunID, seq int32, state status.RunState) store.Transition {
	t := next(run, seq)
	t.State, t.NextCheck = state, store.Never
	return t
}

// commit commits a batch. The test fails if there is an error.
func (w *frame) commit(wr store.Writer, batch ...store.Transition) []store.Outcome {
	w.Helper()
	out, err := wr.Commit(w.ctx, batch)
	if err != nil {
		w.Fatalf("commit: %v", err)
	}
	if len(out) != len(batch) {
		w.Fatalf("outcomes = %d, want one for each of %d transitions", len(out), len(batch))
	}
	return out
}

// land commits a batch. The test fails unless all of it is committed.
func (w *frame) land(wr store.Writer, batch ...store.Transition) {
	w.Helper()
	for i, o := range w.commit(wr, batch...) {
		if !o.Landed || o.Err != nil {
			w.Fatalf("transition %d of run %d seq %d: landed = %v, err = %v", i, batch[i].Run, batch[i].Seq, o.Landed, o.Err)
		}
	}
}

// landLater commits a batch in the background. The returned function waits for it and
// checks that all of it is committed.
func (w *frame) landLater(wr store.Writer, batch ...store.Transition) (landed func()) {
	type answer struct {
		out []store.Outcome
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := wr.Commit(w.ctx, batch)
		done <- answer{out, err}
	}()
	return func() {
		w.Helper()
		a := <-done
		if a.err != nil || len(a.out) != len(batch) {
			w.Fatalf("commit: outcomes = %+v, err = %v", a.out, a.err)
		}
		for i, o := range a.out {
			if !o.Landed {
				w.Errorf("run %d seq %d: outcome = %+v, want landed", batch[i].Run, batch[i].Seq, o)
			}
		}
	}
}

// started creates n runs. They belong to the given actor.
func (w *frame) started(a actor, n int) []status.RunID {
	w.Helper()
	var batch []store.Transition
	var ids []status.RunID
	for range n {
		t := w.create(a)
		batch, ids = append(batch, t), append(ids, t.Run)
	}
	w.land(a.writers[0], batch...)
	return ids
}

func (w *frame) load(id status.RunID) (store.Head, []store.Row) {
	w.Helper()
	h, rows, err := store.LoadRun(w.ctx, w.Other, id)
	if err != nil {
		w.Fatalf("load run %d: %v", id, err)
	}
	for i, r := range rows {
		if r.Seq != int32(i) {
			w.Fatalf("run %d: row %d has seq %d: the journal has a gap", id, i, r.Seq)
		}
	}
	return h, rows
}

// wantRows checks the number of rows in a run's journal.
func (w *frame) wantRows(id status.RunID, n int) {
	w.Helper()
	if _, rows := w.load(id); len(rows) != n {
		w.Fatalf("run %d has %d rows, want %d", id, len(rows), n)
	}
}

// submit submits a run. The test fails if there is an error.
func (w *frame) submit(wr store.Writer, t store.Transition, n naming.Names) store.Submitted {
	w.Helper()
	s, err := Submit(w.ctx, wr, t, n)
	if err != nil {
		w.Fatalf("submit: %v", err)
	}
	return s
}

func (w *frame) tick(a actor) store.Tick {
	w.Helper()
	t, err := w.Store.Tick(w.ctx, a.id, time.Hour, 100)
	if err != nil {
		w.Fatalf("tick of engine %d: %v", a.id, err)
	}
	return t
}

// bury makes a member's lease expire and fences the member.
func (w *frame) bury(a actor) {
	w.Helper()
	w.Expire(w.T, a.id)
	if dead, err := w.Store.Fence(w.ctx, a.id); err != nil || !dead {
		w.Fatalf("fence of expired engine %d: dead = %v, err = %v", a.id, dead, err)
	}
}

func ptr[T any](v T) *T { return &v }

// named returns the first transition of a new run with names in the workflow flowName.
func (w *frame) named(a actor, name, key string) store.Transition {
	t := w.create(a)
	t.Names = &naming.Names{Name: name, Workflow: flowName, Key: key}
	return t
}

// settles sends a batch again after an open outcome, twice. It checks that each row is
// stored once, as it was sent.
func (w *frame) settles(wr store.Writer, batch []store.Transition) {
	w.Helper()
	for range 2 {
		for i, o := range w.commit(wr, batch...) {
			if !o.Landed && !errors.Is(o.Err, store.ErrStale) {
				w.Errorf("transition %d: outcome = %+v, want landed or ErrStale", i, o)
			}
		}
	}
	for _, t := range batch {
		w.wantRows(t.Run, int(t.Seq)+1)
		if _, rows := w.load(t.Run); !bytes.Equal(rows[t.Seq].Data, t.Data) || !rows[t.Seq].At.Equal(t.At) {
			w.Errorf("run %d: row %d is not the one that was sent", t.Run, t.Seq)
		}
	}
}

// wantNothing checks that a refused submission has left neither a run nor a key.
func (w *frame) wantNothing(id status.RunID, key string) {
	w.Helper()
	if _, _, err := store.LoadRun(w.ctx, w.Store, id); !errors.Is(err, store.ErrNotFound) {
		w.Errorf("run %d: err = %v, want ErrNotFound", id, err)
	}
	if rs, err := w.Other.Runs(w.ctx, store.RunFilter{Key: key}); len(rs) != 0 || err != nil {
		w.Errorf("runs of key %.20q = %+v, err = %v, want none", key, rs, err)
	}
}

func (w *frame) wantSteps(id status.RunID, want ...store.StepView) {
	w.Helper()
	got, err := w.Other.StepRows(w.ctx, id)
	if err != nil {
		w.Fatalf("step rows: %v", err)
	}
	if !reflect.DeepEqual(got, want) {
		w.Errorf("steps = %+v\nwant    %+v", got, want)
	}
}
