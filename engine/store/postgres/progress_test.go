package postgres

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// process reads a run as the row of the pattern.
func process(t *testing.T, db *sql.DB, where string) string {
	t.Helper()
	var (
		key, state string
		lockedBy   sql.NullInt64
		completeBy sql.NullTime
		failures   int
	)
	if err := db.QueryRowContext(t.Context(), `SELECT business_key, locked_by, complete_by, process_state, failure_count FROM engine.processes WHERE `+where).Scan(&key, &lockedBy, &completeBy, &state, &failures); err != nil {
		t.Fatal(err)
	}
	owner, by := "no owner", "no time"
	if lockedBy.Valid {
		owner = "owner"
	}
	if completeBy.Valid {
		by = completeBy.Time.UTC().Format("15:04")
	}
	return fmt.Sprintf("%s: %s, %s, %s, %d", key, owner, by, state, failures)
}

// S51 S52 S53: a run shows as the row of the order example, with its first values, through all
// states. The database refuses a state that cannot follow.
func TestProcessRow(t *testing.T) {
	dsn := migrated(t)
	b, db := newBench(t, dsn), raw(t, dsn)
	nobody := store.EngineID(0)
	first := b.create(1)
	first.State, first.Owner, first.NextCheck, first.Names = status.RunQueued, &nobody, at, &naming.Names{Name: "run-1", Workflow: "w", Key: "order-1"}
	seq := int32(0)
	step := func(want string, change func(*store.Transition)) {
		t.Helper()
		row := first
		if seq > 0 {
			row = store.Transition{Run: 1, Seq: seq, At: at.Add(time.Duration(seq) * time.Second), Data: []byte("x")}
			change(&row)
		}
		seq++
		if err := b.commit(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if got := process(t, db, "business_key = 'order-1'"); got != want {
			t.Errorf("row %d: %s, want %s", seq-1, got, want)
		}
	}
	by := time.Date(2026, 1, 2, 15, 4, 0, 0, time.UTC)
	calls := func(state status.StepState, failures, attempt int, by time.Time) []store.StepRow {
		return []store.StepRow{{Node: 0, State: state, Failures: failures, Attempt: attempt, CompleteBy: by}}
	}
	step("order-1: no owner, no time, Pending, 0", nil)
	step("order-1: owner, 15:04, Processing, 0", func(r *store.Transition) {
		r.Owner, r.State, r.Steps = &b.id, status.RunRunning, calls(status.StepRunning, 0, 1, by)
	})
	step("order-1: owner, no time, Processing, 1", func(r *store.Transition) { r.Steps = calls(status.StepBackoff, 1, 1, time.Time{}) })
	step("order-1: owner, 16:04, Processing, 1", func(r *store.Transition) { r.Steps = calls(status.StepRunning, 1, 2, by.Add(time.Hour)) })
	for _, s := range []status.RunState{status.RunWaiting, status.RunPaused, status.RunCompensating} {
		step("order-1: owner, 16:04, Processing, 1", func(r *store.Transition) { r.State = s })
	}
	for _, s := range []status.RunState{status.RunParked, status.RunCompensationFailed} {
		step("order-1: owner, no time, Error, 2", func(r *store.Transition) { r.State, r.Steps = s, calls(status.StepFailed, 2, 2, time.Time{}) })
	}
	step("order-1: owner, no time, Processing, 2", func(r *store.Transition) { r.State = status.RunRunning })
	step("order-1: no owner, no time, Processed, 2", func(r *store.Transition) {
		r.State, r.NextCheck, r.Steps = status.RunSucceeded, store.Never, calls(status.StepSucceeded, 2, 3, time.Time{})
	})
	for i, s := range []status.RunState{status.RunFailed, status.RunCompensated, status.RunCancelled} {
		run := b.create(status.RunID(10 + i))
		run.Names = &naming.Names{Workflow: "w", Key: s.String()}
		if err := b.commit(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if err := b.commit(t.Context(), store.Transition{Run: run.Run, Seq: 1, At: at, State: s, NextCheck: store.Never, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if got, want := process(t, db, fmt.Sprintf("run_id = %d", run.Run)), s.String()+": no owner, no time, Error, 0"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// From Processed nothing follows but an undo that a parent asks for, and nothing is Pending again.
	for _, q := range []string{
		`UPDATE engine.run SET state = 2, finished_at = NULL WHERE run_id = 1`, `UPDATE engine.run SET state = 1, finished_at = NULL WHERE run_id = 1`,
		`UPDATE engine.run SET state = 2, finished_at = NULL WHERE run_id = 10`, `UPDATE engine.run SET state = 9 WHERE run_id = 1`,
	} {
		if _, err := db.ExecContext(t.Context(), q); sqlstate(err) != "23514" {
			t.Errorf("%s: %v, want a refusal", q, err)
		}
	}
}

// S66 S89: the history of a run is read with one statement, which uses indexes only, takes no row
// lock, and needs no key. It does not hold up a commit, and no commit holds it up.
func TestRunEvents(t *testing.T) {
	dsn := migrated(t)
	b, db := newBench(t, dsn), raw(t, dsn)
	first := b.create(77)
	first.Names = &naming.Names{Name: "run-77", Workflow: "w", Key: "order-77"}
	by := time.Date(2026, 1, 2, 15, 4, 0, 0, time.UTC)
	first.Steps = []store.StepRow{{Node: 0, State: status.StepRunning, Attempt: 1, CompleteBy: by}}
	for _, row := range []store.Transition{
		first,
		{Run: 77, Seq: 1, At: at, Data: []byte("x"), NewNodes: []store.NodeName{{Node: 9, Step: 0, Name: `a["x"]`}},
			Steps: []store.StepRow{{Node: 0, State: status.StepBackoff, Failures: 1, Attempt: 1}, {Node: 9, State: status.StepRunning, Attempt: 1, CompleteBy: by}}},
		{Run: 77, Seq: 2, At: at, Data: []byte("x")},
		{Run: 77, Seq: 3, At: at, State: status.RunFailed, NextCheck: store.Never, Data: []byte("x")},
	} {
		if err := b.commit(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	read := func(where string) string {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), `SELECT pg_catalog.concat_ws(' ', seq, n, kind, status, CASE WHEN locked_by > 0 THEN 'owner' END, step, state, attempt, failure_count, pg_catalog.to_char(complete_by AT TIME ZONE 'UTC', 'HH24:MI'))
			FROM engine.run_events WHERE `+where+` ORDER BY seq, n`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var out []string
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(out, "\n")
	}
	var step string
	if err := db.QueryRowContext(t.Context(), `SELECT name FROM engine.workflow_step WHERE node = 0`).Scan(&step); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`0 0 accepted running owner
0 1 step S running 1 0 15:04
1 1 step S backoff 1 1
1 2 step a["x"] running 1 0 15:04
2 0 recorded
3 0 status failed`, " S ", " "+step+" ")
	for _, where := range []string{`run_id = engine.run_number('run-77')`, `run_id = 77`, `workflow = 'w' AND key = 'order-77'`, `run_id = engine.run_number('` + naming.RunName(77) + `')`} {
		if got := read(where); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", where, got, want)
		}
	}
	if got := read(`run_id = engine.run_number('nothing')`); got != "" {
		t.Errorf("events of an unknown run:\n%s", got)
	}
	long := status.RunID(1<<62 + 12345)
	var number int64
	if err := db.QueryRowContext(t.Context(), `SELECT engine.run_number($1)`, naming.RunName(long)).Scan(&number); err != nil || status.RunID(number) != long {
		t.Errorf("run_number(%s) = %d, %v, want %d", naming.RunName(long), number, err, long)
	}

	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mustConn(t, conn, "SET enable_seqscan = off")
	for _, view := range []string{"run_events", "processes"} {
		plan := explain(t, conn, "EXPLAIN SELECT * FROM engine."+view+" WHERE run_id = engine.run_number('run-77')")
		for _, table := range []string{"journal", "journal_first", "run", "run_name"} {
			if strings.Contains(plan, "Seq Scan on "+table+" ") {
				t.Errorf("%s reads all of %s:\n%s", view, table, plan)
			}
		}
	}
	mustConn(t, conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	mustConn(t, conn, "SELECT FROM engine.run_events")
	mustConn(t, conn, "SELECT FROM engine.processes")
	var locks int
	if err := conn.QueryRowContext(t.Context(), `SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks WHERE pid = pg_catalog.pg_backend_pid() AND (locktype = 'tuple' OR locktype = 'relation' AND mode <> 'AccessShareLock')`).Scan(&locks); err != nil || locks != 0 {
		t.Errorf("a reader has %d locks, %v", locks, err)
	}
	if err := b.commit(t.Context(), b.create(78)); err != nil {
		t.Errorf("a commit while a reader is open: %v", err)
	}
	mustConn(t, conn, "COMMIT")
	wait, release := hold(t, db, 79, 0)
	done := make(chan error, 1)
	go func() { done <- b.commit(t.Context(), b.create(79)) }()
	wait(1)
	if got := read(`run_id = 77`); got != want {
		t.Errorf("while a commit is open:\n%s", got)
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
