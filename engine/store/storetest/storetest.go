// Package storetest holds the rules that every store.Store must obey, as test cases. Each
// case says why its rule exists. Most cases test for a fault that some store has had. The
// test of a store calls Run.
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

// A Harness holds an empty store under test, and functions that only a test may use. The
// fields Store, Expire, Lose and LoseFenced must be set.
type Harness struct {
	Store store.Store
	// Other is a second store.Store with the same data, as another process would open it;
	// nil = the tests use Store instead.
	Other store.Store
	// Expire makes a member's lease expire at once.
	Expire func(t *testing.T, id store.EngineID)
	// Lose breaks the connection for the next batch or submission that a writer of Store sends. If
	// `landed` is true, the store commits the batch, and the reply is lost. If `landed` is false,
	// the request is lost, and the store does not commit the batch.
	Lose func(t *testing.T, landed bool)
	// LoseFenced is like Lose. In addition, it declares the engine of the writer dead
	// before the writer can send the batch again.
	LoseFenced func(t *testing.T, id store.EngineID, landed bool)
	// Hold blocks every client that appends the row with the number `seq` to the journal of a run,
	// until the test calls the function `release`. The function `wait` returns when n clients are
	// blocked. Hold is nil if the store makes one commit at a time in one process, because then a
	// test cannot observe a commit in flight.
	Hold func(t *testing.T, run status.RunID, seq int32) (wait func(n int), release func())
	// Cut breaks the connections of Store's writers now. The server still executes the
	// requests that it has received. Cut is nil if Hold is nil.
	Cut func(t *testing.T)
	// Limited is true if the store can replace sealed data, but its database user has no right to
	// do so.
	Limited bool
	// Read begins a transaction that reads, and returns a function that ends the
	// transaction. Read is nil if the store never keeps such a transaction open.
	Read func(t *testing.T) (end func())
}

// A rule is one test case for stores.
type rule struct {
	name string
	why  string
	run  func(w *world)
	need func(h Harness) bool // reports whether the rule applies to the store; nil = always
}

// A world is the argument of each test case. It holds the store under test, and helper
// methods for the case.
type world struct {
	*frame
	messaging
	suspects
	shortened
	aged
}

// A frame holds the store under test, which has one definition, and the helper methods that
// all cases need.
type frame struct {
	*testing.T
	Harness
	Store, Other store.Full      // Store and Other of the Harness, with all optional roles (store.Complete)
	ctx          context.Context // context of the test case
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
	l := messaging{w}
	return &world{frame: w, messaging: l, suspects: suspects{w}, shortened: shortened{w}, aged: aged{l, shortened{w}}}
}

// An actor is an engine with its writers.
type actor struct {
	id      store.EngineID
	writers []store.Writer
}

// join registers an engine in a store and opens its writers.
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

// end returns a transition that changes a run to the given state and sets NextCheck to
// Never. Usually the state is final.
func end(run status.RunID, seq int32, state status.RunState) store.Transition {
	t := next(run, seq)
	t.State, t.NextCheck = state, store.Never
	return t
}

// commit commits a batch and returns the outcomes. The test fails if Commit returns an
// error.
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

// land commits a batch. The test fails unless every transition is committed.
func (w *frame) land(wr store.Writer, batch ...store.Transition) {
	w.Helper()
	for i, o := range w.commit(wr, batch...) {
		if !o.Landed || o.Err != nil {
			w.Fatalf("transition %d of run %d seq %d: landed = %v, err = %v", i, batch[i].Run, batch[i].Seq, o.Landed, o.Err)
		}
	}
}

// landLater commits a batch in another goroutine. The returned function waits until Commit
// has returned, and checks that every transition is committed.
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

// started creates n runs of the given actor and returns their ids.
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

// submit submits a run and returns the result. The test fails if there is an error.
func (w *frame) submit(wr store.Writer, t store.Transition, n naming.Names) store.Submitted {
	w.Helper()
	s, err := Submit(w.ctx, wr, t, n)
	if err != nil {
		w.Fatalf("submit: %v", err)
	}
	return s
}

// Submit adds names to a transition and commits the transition alone. It returns
// Outcome.Submitted, and the error of Commit or of the outcome.
func Submit(ctx context.Context, w store.Writer, t store.Transition, n naming.Names) (store.Submitted, error) {
	t.Names = &n
	out, err := w.Commit(ctx, []store.Transition{t})
	if err != nil {
		return store.Submitted{}, err
	}
	return out[0].Submitted, out[0].Err
}

func (w *frame) tick(a actor) store.Tick {
	w.Helper()
	t, err := w.Store.Tick(w.ctx, a.id, time.Hour, 100)
	if err != nil {
		w.Fatalf("tick of engine %d: %v", a.id, err)
	}
	return t
}

// bury makes a member's lease expire and declares the member dead (Fence).
func (w *frame) bury(a actor) {
	w.Helper()
	w.Expire(w.T, a.id)
	if dead, err := w.Store.Fence(w.ctx, a.id); err != nil || !dead {
		w.Fatalf("fence of expired engine %d: dead = %v, err = %v", a.id, dead, err)
	}
}

// Now returns store time. For this purpose, Now registers a new engine (Join) and reads the time
// from the engine's tick.
func (w *frame) Now(s store.Store) time.Time {
	w.Helper()
	id, err := s.Join(w.ctx, "clock", time.Hour, 1)
	if err != nil {
		w.Fatal(err)
	}
	t, err := s.Tick(w.ctx, id, time.Hour, 1)
	if err != nil {
		w.Fatal(err)
	}
	return t.Now
}

func ptr[T any](v T) *T { return &v }

// named returns the first transition of a new run with this name and key. The name of the run's
// workflow is the constant flowName.
func (w *frame) named(a actor, name, key string) store.Transition {
	t := w.create(a)
	t.Names = &naming.Names{Name: name, Workflow: flowName, Key: key}
	return t
}

// sendAgain is called after a Commit with an error that does not say whether the batch was stored.
// It sends the same batch twice more, and checks that each row is stored once and unchanged.
func (w *frame) sendAgain(wr store.Writer, batch []store.Transition) {
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
