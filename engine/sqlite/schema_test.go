package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// rawNew makes a database that is not ours.
func rawNew(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "rwc"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// S53 S10: the constraints forbid illegal rows by themselves, whoever writes
// them.
func TestConstraints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path, Options{})
	db := raw(t, path)
	const run = `INSERT INTO run VALUES (?1, 1, ?2, ?3, 0, 1, 1, ?4)`
	must(t, db, run, 1, 2, 1, nil)
	must(t, db, run, 2, 10, 1, 5)
	const row = `INSERT INTO journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, steps, data)
		VALUES (?1, ?2, 1, ?3, 2, 1, 1, 1, unhex(?4), unhex(?5))`
	const (
		fine  = "00000001020000010000000000000001"
		naked = "00000002020000010000000000000000" // running without complete-by
		none  = "00000002000000010000000000000001" // no such state
	)
	must(t, db, row, 1, 0, 1, fine, "01")
	must(t, db, row, 1, 1, nil, strings.Repeat(fine, 5000), "01")
	cases := map[string]struct {
		query string
		args  []any
	}{
		"state outside the set":       {run, []any{3, 9, 1, nil}},
		"state zero":                  {run, []any{3, 0, 1, nil}},
		"negative owner":              {run, []any{3, 2, -1, nil}},
		"run id zero":                 {run, []any{0, 2, 1, nil}},
		"finished but open":           {run, []any{3, 2, 1, 5}},
		"final but not finished":      {run, []any{3, 10, 1, nil}},
		"final to running":            {`UPDATE run SET state = 2, finished_at = NULL WHERE run_id = 2`, nil},
		"back to the queue":           {`UPDATE run SET state = 1 WHERE run_id = 1`, nil},
		"text for a number":           {`UPDATE run SET next_check = 'soon' WHERE run_id = 1`, nil},
		"next_check missing":          {`UPDATE run SET next_check = NULL WHERE run_id = 1`, nil},
		"negative seq":                {row, []any{1, -1, 1, nil, "01"}},
		"first row without workflow":  {row, []any{3, 0, nil, nil, "01"}},
		"row without data":            {row, []any{1, 2, nil, nil, ""}},
		"step entry cut short":        {row, []any{1, 2, nil, "0000", "01"}},
		"step state too large":        {row, []any{1, 2, nil, "000000010e0000010000000000000001", "01"}},
		"duplicate seq":               {row, []any{1, 0, 1, nil, "01"}},
		"name too long":               {`INSERT INTO run_name VALUES (1, printf('%.101c', 'x'), NULL)`, nil},
		"name empty":                  {`INSERT INTO run_name VALUES (1, '', NULL)`, nil},
		"key too long":                {`INSERT INTO run_name VALUES (1, 'n', printf('%.1025c', 'k'))`, nil},
		"workflow of no definition":   {`INSERT INTO workflow (digest, name) VALUES ('none', 'x')`, nil},
		"neither dead nor alive":      {`INSERT INTO member (address, joined_at, lease_until, dead) VALUES ('a', 1, 1, 2)`, nil},
		"first of many entries naked": {row, []any{1, 2, nil, naked + strings.Repeat(fine, 4), "01"}},
		"last of many entries naked":  {row, []any{1, 2, nil, strings.Repeat(fine, 999) + naked, "01"}},
		"last of many entries none":   {row, []any{1, 2, nil, strings.Repeat(fine, 999) + none, "01"}},
	}
	for at := range 6 {
		for what, entry := range map[string]string{"naked": naked, "none": none} {
			name := fmt.Sprintf("entry %d %s", at, what)
			cases[name] = struct {
				query string
				args  []any
			}{row, []any{1, 2, nil, strings.Repeat(fine, at) + entry, "01"}}
		}
	}
	must(t, db, `PRAGMA foreign_keys = 1`)
	db.SetMaxOpenConns(1)
	for name, c := range cases {
		if _, err := db.ExecContext(t.Context(), c.query, c.args...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The views, which need no function of this program, show what StepRows and
// Runs return (S9, S14, S63).
func TestViews(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	at := time.Date(2026, 11, 21, 9, 0, 0, 123000000, time.UTC)
	batch := []engine.Transition{{
		Run: 1, Seq: 1, At: at, State: machine.RunParked, NextCheck: engine.Never, Data: []byte("1"),
		NewNodes: []engine.NodeName{{Node: 3, Step: 2, Name: `c["x"]`}, {Node: 700, Step: 2, Name: `c["y"]`}},
		Steps: []engine.StepRow{
			{Node: 0, State: machine.StepBackoff, Attempt: 1, Failures: 1},
			{Node: 0, State: machine.StepSucceeded, Attempt: 513, Failures: 200},
			{Node: 1, State: machine.StepUndoFailed, Attempt: 65535, Failures: 255},
			{Node: 700, State: machine.StepRunning, Attempt: 2, Failures: 1, CompleteBy: at.Add(time.Hour)},
		},
	}}
	if out, err := w.Commit(t.Context(), batch); err != nil || !out[0].Landed {
		t.Fatalf("commit: %+v, err = %v", out, err)
	}
	want, err := s.StepRows(t.Context(), 1)
	if err != nil || len(want) != 5 {
		t.Fatalf("step rows = %+v, err = %v", want, err)
	}
	rows, err := raw(t, path).QueryContext(t.Context(), `SELECT node, step, state, attempt, failure_count, coalesce(locked_by, 0), coalesce(complete_by, ''), run, workflow, run_state FROM steps WHERE run_id = 1 ORDER BY node`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var (
			g                              engine.StepView
			state, by, run, flow, runState string
			wantBy                         string
		)
		if err := rows.Scan(&g.Node, &g.Name, &state, &g.Attempt, &g.Failures, &g.LockedBy, &by, &run, &flow, &runState); err != nil {
			t.Fatal(err)
		}
		if x := want[n]; !x.CompleteBy.IsZero() {
			wantBy = x.CompleteBy.Format("2006-01-02T15:04:05.000Z")
		}
		if x := want[n]; g.Node != x.Node || g.Name != x.Name || state != x.State.String() || g.Attempt != x.Attempt ||
			g.Failures != x.Failures || g.LockedBy != x.LockedBy || by != wantBy || run != "1" || flow != "w" || runState != "parked" {
			t.Errorf("view shows %+v in state %s until %q of %s %s %s, want %+v", g, state, by, run, flow, runState, x)
		}
	}
	if err := rows.Err(); err != nil || n != len(want) {
		t.Errorf("%d rows, err = %v, want %d", n, err, len(want))
	}
	var (
		run, flow, state, digest string
		owner                    engine.EngineID
		alive                    bool
		check, finished          sql.NullString
	)
	err = raw(t, path).QueryRowContext(t.Context(), `SELECT run, workflow, state, locked_by, owner_alive, next_check, finished_at, digest FROM runs`).
		Scan(&run, &flow, &state, &owner, &alive, &check, &finished, &digest)
	if err != nil || run != "1" || flow != "w" || state != "parked" || owner != id || !alive || check.Valid || finished.Valid || digest != "d" {
		t.Errorf("runs shows %s %s %s %d %v %v %v %s, err = %v", run, flow, state, owner, alive, check, finished, digest, err)
	}
}

// The names of states in the views are those of engine/machine.
func TestStateNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path, Options{})
	db := raw(t, path)
	for i := range 20 {
		var run, step sql.NullString
		err := db.QueryRowContext(t.Context(), `SELECT (SELECT name FROM run_state WHERE state = ?1), (SELECT name FROM step_state WHERE state = ?1)`, i).Scan(&run, &step)
		if err != nil {
			t.Fatal(err)
		}
		if st, ok := machine.ParseRunState(machine.RunState(i).String()); ok != run.Valid || ok && run.String != st.String() {
			t.Errorf("run state %d is %q in the view, %v in the machine", i, run.String, machine.RunState(i))
		}
		if s := machine.StepState(i); step.Valid != !strings.HasPrefix(s.String(), "StepState(") || step.Valid && step.String != s.String() {
			t.Errorf("step state %d is %q in the view, %v in the machine", i, step.String, s)
		}
	}
}

// The queries of ticks, takeovers and loads use their index, and read no table
// of runs from end to end.
func TestPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path, Options{})
	db := raw(t, path)
	for name, c := range map[string]struct {
		query string
		args  int
		want  string
	}{
		"runDue":        {runDue, 3, "SEARCH run USING INDEX run_active (owner=? AND next_check<?)"},
		"orphanList":    {orphanList, 2, "SEARCH run USING INDEX run_active (owner=?)"},
		"memberForget":  {memberForget, 1, "SEARCH run USING INDEX run_active (owner=?)"},
		"runLoad":       {runLoad, 1, "SEARCH j USING PRIMARY KEY (run_id=?)"},
		"rowList":       {rowList, 3, "SEARCH journal USING PRIMARY KEY (run_id=? AND seq>?)"},
		"journalWriter": {journalWriter, 2, "SEARCH journal USING PRIMARY KEY (run_id=? AND seq=?)"},
		"runChange":     {runChange, 6, "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)"},
		"runNameHolder": {runNameHolder, 1, "SEARCH run_name USING"},
		"contextHolder": {contextHolder, 2, "SEARCH c USING PRIMARY KEY (workflow=? AND key=?)"},
		"runList":       {runList, 6, "SCAN r"}, // in the order of the list, up to its limit
		"runListByKey":  {runListByKey, 7, "SEARCH n USING INDEX run_name_key (key=?)"},
		"runFindByName": {runFindByName, 2, "SEARCH n USING INDEX"},
		"runFindByID":   {runFindByID, 2, "SEARCH r USING INTEGER PRIMARY KEY"},
		"stepSource":    {stepSource, 1, "SEARCH journal USING PRIMARY KEY (run_id=?)"},
		"alertList":     {alertList, 1, "USING INDEX alert_at"},
	} {
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+c.query, make([]any, c.args)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var line string
			if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&plan, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan.String(), c.want) {
			t.Errorf("%s: plan does not say %q:\n%s", name, c.want, &plan)
		}
		scans := regexp.MustCompile(`SCAN (run|journal|j|run_name|n|alert)\b.*`).FindAllString(plan.String(), -1)
		for _, scan := range scans {
			if name != "alertList" || !strings.Contains(scan, "USING INDEX") {
				t.Errorf("%s: plan reads everything:\n%s", name, &plan)
			}
		}
	}
}
