package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// An exchange is a unique key whose run is open, and a second session that submits runs which replace it.
type exchange struct {
	*testing.T
	yard     *yard
	second   *bench
	old, new status.RunID
	scope    naming.Scope
}

func newExchange(t *testing.T, scope naming.Scope) *exchange {
	y := newYard(t)
	x := &exchange{T: t, yard: y, second: newBench(t, y.dsn), old: naming.FirstRunOf(time.Now()), scope: scope}
	x.new = x.old + 1
	x.commit(store.Transition{Run: x.old, Workflow: y.flow, State: status.RunRunning, Owner: &y.id, Data: []byte{1}, Names: x.names()})
	return x
}

func (x *exchange) names() *naming.Names {
	return &naming.Names{Workflow: "w", Key: "k", KeyScope: naming.KeyScope{Scope: x.scope}}
}

// commit commits a transition with the writer of the engine that has the old run.
func (x *exchange) commit(t store.Transition) {
	x.Helper()
	t.At, t.NextCheck = time.Now(), store.Never
	out, err := x.yard.w.Commit(context.WithoutCancel(x.Context()), []store.Transition{t})
	if err != nil || out[0].Err != nil || !out[0].Landed {
		x.Errorf("run %d, row %d: %+v, err = %v", t.Run, t.Seq, out, err)
	}
}

// end ends the old run.
func (x *exchange) end(to status.RunState) {
	x.Helper()
	x.commit(store.Transition{Run: x.old, Seq: 1, State: to, Data: []byte{2}})
}

// replace submits the new run. Its outcome comes through the channel.
func (x *exchange) replace() <-chan store.Outcome {
	done := make(chan store.Outcome, 1)
	t := store.Transition{
		Run: x.new, At: time.Now(), Workflow: x.yard.flow, State: status.RunQueued, Owner: &x.second.id, NextCheck: store.Never, Data: []byte{1}, Names: x.names(),
		Replaces: &store.Message{Kind: store.MessageVerb, By: "ann", Dedup: "replaced", Data: []byte{1}},
	}
	go func() {
		out, err := x.second.w.Commit(context.WithoutCancel(x.Context()), []store.Transition{t})
		if err != nil {
			out = []store.Outcome{{Err: err}}
		}
		done <- out[0]
	}()
	return done
}

// look returns the state of the key, and the run that waits for it.
func (x *exchange) look() (goals.State, status.RunID) {
	x.Helper()
	g, err := goals.Find(x.Context(), x.yard.s, "w", "k")
	if err != nil {
		x.Fatal(err)
	}
	return g.State, g.Next
}

// S95 I15: the run of the key ends while a submission that replaces it is on its way. Everybody could see
// that the key is reached or free, so the answer of the submission says so.
func TestReplaceWhileTheRunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		scope naming.Scope
		to    status.RunState
		seen  goals.State
	}{
		"the goal is reached": {naming.ScopeGoal, status.RunSucceeded, goals.Reached},
		"the key is free":     {naming.ScopeGoal, status.RunCancelled, goals.Free},
		"active":              {naming.ScopeActive, status.RunSucceeded, goals.Free},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(t, c.scope)
			wait, release := hold(t, x.yard.db, x.new, 0)
			done := x.replace()
			wait(1) // the submission has read that the old run is open
			x.end(c.to)
			if state, next := x.look(); state != c.seen || next != 0 {
				t.Errorf("the key is %s, and run %d waits, want %s", state, next, c.seen)
			}
			release()
			switch o := <-done; {
			case c.seen == goals.Free && !errors.Is(o.Err, naming.ErrFree):
				t.Errorf("%+v, want that the key is free", o)
			case c.seen == goals.Reached && (o.Err != nil || o.Landed || o.Submitted.Run != x.old):
				t.Errorf("%+v, want that run %d has reached the goal", o, x.old)
			}
			if state, next := x.look(); state != c.seen || next != 0 {
				t.Errorf("the key is %s, and run %d waits afterwards, want %s", state, next, c.seen)
			}
			var messages int
			if err := x.yard.db.QueryRowContext(t.Context(), `SELECT count(*) FROM engine.inbox`).Scan(&messages); err != nil || messages != 0 {
				t.Errorf("%d messages, err = %v, want none", messages, err)
			}
		})
	}
}

// S95 I15: the run of the key ends while a submission that replaces the run which waits is on its way. The
// new run waits, because the run that waited is open.
func TestReplaceTheNextWhileTheRunEnds(t *testing.T) {
	x := newExchange(t, naming.ScopeGoal)
	first := x.new
	if o := <-x.replace(); !o.Landed {
		t.Fatalf("%+v, want a new run", o)
	}
	x.new++
	wait, release := hold(t, x.yard.db, x.new, 0)
	done := x.replace()
	wait(1)
	x.end(status.RunCancelled)
	if state, next := x.look(); state != goals.Open || next != first {
		t.Errorf("the key is %s, and run %d waits, want run %d", state, next, first)
	}
	release()
	if o := <-done; o.Err != nil || !o.Landed {
		t.Errorf("%+v, want a new run", o)
	}
	if state, next := x.look(); state != goals.Open || next != x.new {
		t.Errorf("the key is %s, and run %d waits, want run %d", state, next, x.new)
	}
}

// S95 I15: from the last check of a submission until its COMMIT, the run that it replaces cannot end.
func TestReplaceKeepsTheRunOpen(t *testing.T) {
	x := newExchange(t, naming.ScopeGoal)
	db := x.yard.db
	must(t, db, `
CREATE FUNCTION public.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.pg_advisory_xact_lock(95); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON engine.context DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.late()`)
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT pg_catalog.pg_advisory_xact_lock(95)`); err != nil {
		t.Fatal(err)
	}
	done := x.replace()
	awaitLocks(t, db, 1, nil) // the submission is at its COMMIT
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.end(status.RunSucceeded)
	}()
	awaitLocks(t, db, 2, ended) // the end of the run waits for the submission
	if state, next := x.look(); state != goals.Open || next != 0 {
		t.Errorf("the key is %s, and run %d waits, want an open run", state, next)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if o := <-done; o.Err != nil || !o.Landed {
		t.Errorf("%+v, want a new run", o)
	}
	if state, next := x.look(); state != goals.Reached || next != x.new {
		t.Errorf("the key is %s, and run %d waits, want run %d after a run that has reached the goal", state, next, x.new)
	}
}

// awaitLocks waits until n sessions wait for a lock. It fails the test if the channel is closed before that.
func awaitLocks(t *testing.T, db *sql.DB, n int, early <-chan struct{}) {
	t.Helper()
	for found := -1; found < n; {
		select {
		case <-early:
			t.Errorf("%d sessions wait for a lock, want %d", found, n)
			return
		case <-time.After(2 * time.Millisecond):
		}
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&found); err != nil {
			t.Fatal(err)
		}
	}
}
