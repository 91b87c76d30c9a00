package postgres

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// wide puts run 1 into a new store: three steps, and n instances of the last.
func wide(t *testing.T, dsn string, n int) (*Store, store.EngineID, store.Writer) {
	t.Helper()
	s := open(t, dsn)
	ids, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a", "b", "c"}}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Join(t.Context(), "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	create := store.Transition{Run: 1, At: at, Workflow: ids["w"], State: status.RunRunning, Owner: &id, NextCheck: store.Never, Data: []byte("0")}
	for i := range n {
		create.NewNodes = append(create.NewNodes, store.NodeName{Node: int32(3 + i), Step: 2, Name: fmt.Sprintf("c[%q]", fmt.Sprint(i))})
		create.Steps = append(create.Steps, store.StepRow{Node: int32(3 + i), State: status.StepHeld})
	}
	if _, err := storetest.Submit(t.Context(), w, create, naming.Names{Name: "order", Workflow: "w", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	return s, id, w
}

var at = time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC)

// The views show what StepRows and Runs return (S9, S14, S63).
func TestViews(t *testing.T) {
	dsn := migrated(t)
	s, id, w := wide(t, dsn, 2)
	second, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d2", Data: []byte("2"), Workflows: []store.DefinedWorkflow{{Name: "w"}}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Commit(t.Context(), []store.Transition{{
		Run: 1, Seq: 1, At: at, State: status.RunParked, Data: []byte("1"), Moved: second["w"],
		Steps: []store.StepRow{
			{Node: 0, State: status.StepBackoff, Attempt: 1, Failures: 1},
			{Node: 0, State: status.StepSucceeded, Attempt: 513, Failures: 200},
			{Node: 1, State: status.StepUndoFailed, Attempt: 65535, Failures: 255},
			{Node: 4, State: status.StepRunning, Attempt: 2, Failures: 1, CompleteBy: at.Add(time.Hour)},
		},
	}})
	if err != nil || !out[0].Landed {
		t.Fatalf("commit: %+v, err = %v", out, err)
	}
	want, err := s.StepRows(t.Context(), 1)
	if err != nil || len(want) != 5 {
		t.Fatalf("step rows = %+v, err = %v", want, err)
	}
	db := raw(t, dsn)
	rows, err := db.QueryContext(t.Context(), `SELECT node, step, state, attempt, failure_count, coalesce(locked_by, 0), complete_by, run, workflow, key, run_status, run_state FROM engine.steps WHERE run_id = 1 ORDER BY node`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var (
			g                                      store.StepView
			state, run, flow, key, runState, older string
			by                                     sql.NullTime
		)
		if err := rows.Scan(&g.Node, &g.Name, &state, &g.Attempt, &g.Failures, &g.LockedBy, &by, &run, &flow, &key, &runState, &older); err != nil {
			t.Fatal(err)
		}
		if by.Valid {
			g.CompleteBy = by.Time.UTC()
		}
		for s := status.StepPending; s <= status.StepUndoFailed; s++ {
			if s.String() == state {
				g.State = s
			}
		}
		if g != want[n] || run != "order" || flow != "w" || key != "k" || runState != "parked" || older != runState {
			t.Errorf("view shows %+v of %s %s %s %s, want %+v", g, run, flow, key, runState, want[n])
		}
	}
	if err := rows.Err(); err != nil || n != len(want) {
		t.Errorf("%d rows, err = %v, want %d", n, err, len(want))
	}
	var (
		run, flow, key, runState, older, digest string
		owner                                   store.EngineID
		alive                                   bool
		check, finished                         sql.NullTime
	)
	err = db.QueryRowContext(t.Context(), `SELECT run, workflow, key, status, state, locked_by, owner_alive, next_check, finished_at, digest FROM engine.runs`).
		Scan(&run, &flow, &key, &runState, &older, &owner, &alive, &check, &finished, &digest)
	if err != nil || run != "order" || flow != "w" || key != "k" || runState != "parked" || older != runState || owner != id || !alive || check.Valid || finished.Valid || digest != "d2" {
		t.Errorf("runs shows %s %s %s %s %d %v %v %v %s, err = %v", run, flow, key, runState, owner, alive, check, finished, digest, err)
	}
}

// A run with 10,000 instances is shown whole, and in reasonable time.
func TestWideRun(t *testing.T) {
	dsn := migrated(t)
	const n = 10_000
	s, _, w := wide(t, dsn, n)
	for seq := int32(1); seq <= 20; seq++ {
		t1 := store.Transition{Run: 1, Seq: seq, At: at, Data: []byte("x")}
		for i := range n / 20 {
			t1.Steps = append(t1.Steps, store.StepRow{Node: int32(3 + int(seq-1)*n/20 + i), State: status.StepSucceeded, Attempt: 1})
		}
		if out, err := w.Commit(t.Context(), []store.Transition{t1}); err != nil || !out[0].Landed {
			t.Fatalf("commit: %+v, err = %v", out, err)
		}
	}
	start := time.Now()
	got, err := s.StepRows(t.Context(), 1)
	if err != nil || len(got) != n+3 || got[n].State != status.StepSucceeded {
		t.Errorf("%d steps, err = %v, want %d", len(got), err, n+3)
	}
	rows := time.Since(start)
	var count int
	start = time.Now()
	if err := raw(t, dsn).QueryRowContext(t.Context(), `SELECT count(*) FROM engine.steps WHERE run_id = 1 AND state = 'succeeded'`).Scan(&count); err != nil || count != n {
		t.Errorf("%d steps in the view, err = %v, want %d", count, err, n)
	}
	// Reading the wide row once for each of its entries took 7 s.
	if view := time.Since(start); rows > 3*time.Second || view > 5*time.Second {
		t.Errorf("step rows took %v, the view %v", rows, view)
	}
}
