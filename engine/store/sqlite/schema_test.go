package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
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

		check      = "275 CHECK constraint failed: "
		steps      = check + "CASE length(steps)" // and what follows it
		manySteps  = "1811 illegal step in a row of the journal"
		runChanged = "1811 a run in this state cannot become that"
	)
	must(t, db, row, 1, 0, 1, fine, "01")
	must(t, db, row, 1, 1, nil, strings.Repeat(fine, 4), "01")
	const wide = `INSERT INTO wide VALUES (?1, ?2, unhex(?3))`
	must(t, db, wide, 1, 1, strings.Repeat(fine, 5000))
	must(t, db, `INSERT INTO definition VALUES ('d', x'01', 1)`)
	must(t, db, `INSERT INTO workflow (digest, name) VALUES ('d', 'x')`)
	cases := map[string]struct {
		query string
		args  []any
		want  string // code, and the first line of which rule is broken
	}{
		"state outside the set":       {run, []any{3, 9, 1, nil}, check + "state BETWEEN 1 AND 7 OR state BETWEEN 10 AND 13"},
		"state zero":                  {run, []any{3, 0, 1, nil}, check + "state BETWEEN 1 AND 7 OR state BETWEEN 10 AND 13"},
		"negative owner":              {run, []any{3, 2, -1, nil}, check + "owner >= 0"},
		"run id zero":                 {run, []any{0, 2, 1, nil}, check + "run_id > 0"},
		"finished but open":           {run, []any{3, 2, 1, 5}, check + "(finished_at IS NOT NULL) = (state >= 10)"},
		"final but not finished":      {run, []any{3, 10, 1, nil}, check + "(finished_at IS NOT NULL) = (state >= 10)"},
		"final to running":            {`UPDATE run SET state = 2, finished_at = NULL WHERE run_id = 2`, nil, runChanged},
		"back to the queue":           {`UPDATE run SET state = 1 WHERE run_id = 1`, nil, runChanged},
		"text for a number":           {`UPDATE run SET next_check = 'soon' WHERE run_id = 1`, nil, "3091 cannot store TEXT value in INTEGER column run.next_check"},
		"next_check missing":          {`UPDATE run SET next_check = NULL WHERE run_id = 1`, nil, "1299 NOT NULL constraint failed: run.next_check"},
		"negative seq":                {row, []any{1, -1, 1, nil, "01"}, check + "seq >= 0"},
		"first row without workflow":  {row, []any{3, 0, nil, nil, "01"}, check + "seq > 0 OR workflow_id IS NOT NULL AND run_state IS NOT NULL AND owner IS NOT NULL AND next_check IS NOT NULL"},
		"row without data":            {row, []any{1, 2, nil, nil, ""}, check + "data <> x''"},
		"step entry cut short":        {row, []any{1, 2, nil, "0000", "01"}, steps},
		"step state too large":        {row, []any{1, 2, nil, "000000010e0000010000000000000001", "01"}, steps},
		"duplicate seq":               {row, []any{1, 0, 1, nil, "01"}, "1555 UNIQUE constraint failed: journal.run_id, journal.seq"},
		"name too long":               {`INSERT INTO run_name VALUES (1, printf('%.101c', 'x'), NULL, NULL, 0)`, nil, check + "length(name) BETWEEN 1 AND 100"},
		"name empty":                  {`INSERT INTO run_name VALUES (1, '', NULL, NULL, 0)`, nil, check + "length(name) BETWEEN 1 AND 100"},
		"key too long":                {`INSERT INTO run_name VALUES (1, 'n', printf('%.1025c', 'k'), NULL, 0)`, nil, check + "key <> '' AND length(CAST(key AS BLOB)) <= 1024"},
		"second run of an id":         {run, []any{1, 2, 1, nil}, "1555 UNIQUE constraint failed: run.run_id"},
		"two workflows of one name":   {`INSERT INTO workflow (digest, name) VALUES ('d', 'x')`, nil, "2067 UNIQUE constraint failed: workflow.digest, workflow.name"},
		"workflow of no definition":   {`INSERT INTO workflow (digest, name) VALUES ('none', 'x')`, nil, "787 FOREIGN KEY constraint failed"},
		"neither dead nor alive":      {`INSERT INTO member (address, joined_at, lease_until, dead) VALUES ('a', 1, 1, 2)`, nil, check + "dead IN (0, 1)"},
		"first of many entries naked": {wide, []any{1, 2, naked + strings.Repeat(fine, 4)}, manySteps},
		"last of many entries naked":  {wide, []any{1, 2, strings.Repeat(fine, 999) + naked}, manySteps},
		"last of many entries none":   {wide, []any{1, 2, strings.Repeat(fine, 999) + none}, manySteps},
		"wide entry cut short":        {wide, []any{1, 2, strings.Repeat(fine, 5) + "00"}, check + "length(steps) > 64 AND length(steps) % 16 = 0"},
		"wide row of four":            {wide, []any{1, 2, strings.Repeat(fine, 4)}, check + "length(steps) > 64 AND length(steps) % 16 = 0"},
		"row of five":                 {row, []any{1, 2, nil, strings.Repeat(fine, 5), "01"}, steps},
	}
	for at := range 6 {
		for what, entry := range map[string]string{"naked": naked, "none": none} {
			name := fmt.Sprintf("entry %d %s", at, what)
			c := cases["step state too large"]
			c.args = []any{1, 2, nil, strings.Repeat(fine, at) + entry, "01"}
			if at >= 4 {
				c = cases["last of many entries none"]
				c.args = []any{1, 2, strings.Repeat(fine, at) + entry}
			}
			cases[name] = c
		}
	}
	must(t, db, `PRAGMA foreign_keys = 1`)
	db.SetMaxOpenConns(1)
	for name, c := range cases {
		_, err := db.ExecContext(t.Context(), c.query, c.args...)
		if got := brokenRule(err); got != c.want {
			t.Errorf("%s: refused with %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

// brokenRule tells which rule an error speaks of: the extended result code, and
// the first line of what SQLite says of the constraint; "" = none.
func brokenRule(err error) string {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return ""
	}
	text := strings.TrimPrefix(e.Error(), "constraint failed: ")
	text = strings.TrimSuffix(text, fmt.Sprintf(" (%d)", e.Code()))
	text, _, _ = strings.Cut(text, "\n")
	return fmt.Sprintf("%d %s", e.Code(), text)
}

// The views, which need no function of this program, show what StepRows and
// Runs return (S9, S14, S63).
func TestViews(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	at := time.Date(2026, 11, 21, 9, 0, 0, 123000000, time.UTC)
	second, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d2", Data: []byte("2"), Workflows: []store.DefinedWorkflow{{Name: "w"}}})
	if err != nil {
		t.Fatal(err)
	}
	batch := []store.Transition{{
		Run: 1, Seq: 1, At: at, State: status.RunParked, NextCheck: store.Never, Data: []byte("1"), Moved: second["w"],
		NewNodes: []store.NodeName{{Node: 3, Step: 2, Name: `c["x"]`}, {Node: 700, Step: 2, Name: `c["y"]`}},
		Steps: []store.StepRow{
			{Node: 0, State: status.StepBackoff, Attempt: 1, Failures: 1},
			{Node: 0, State: status.StepSucceeded, Attempt: 513, Failures: 200},
			{Node: 1, State: status.StepUndoFailed, Attempt: 65535, Failures: 255},
			{Node: 700, State: status.StepRunning, Attempt: 2, Failures: 1, CompleteBy: at.Add(time.Hour)},
		},
	}}
	if out, err := w.Commit(t.Context(), batch); err != nil || !out[0].Landed {
		t.Fatalf("commit: %+v, err = %v", out, err)
	}
	want, err := s.StepRows(t.Context(), 1)
	if err != nil || len(want) != 5 {
		t.Fatalf("step rows = %+v, err = %v", want, err)
	}
	rows, err := raw(t, path).QueryContext(t.Context(), `SELECT node, step, state, attempt, failure_count, coalesce(locked_by, 0), coalesce(complete_by, ''), run, workflow, run_status, run_state FROM steps WHERE run_id = 1 ORDER BY node`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var (
			g                                   store.StepView
			state, by, run, flow, status, older string
			wantBy                              string
		)
		if err := rows.Scan(&g.Node, &g.Name, &state, &g.Attempt, &g.Failures, &g.LockedBy, &by, &run, &flow, &status, &older); err != nil {
			t.Fatal(err)
		}
		if x := want[n]; !x.CompleteBy.IsZero() {
			wantBy = x.CompleteBy.Format("2006-01-02T15:04:05.000Z")
		}
		if x := want[n]; g.Node != x.Node || g.Name != x.Name || state != x.State.String() || g.Attempt != x.Attempt ||
			g.Failures != x.Failures || g.LockedBy != x.LockedBy || by != wantBy || run != "n-1" || flow != "w" || status != "parked" || older != status {
			t.Errorf("view shows %+v in state %s until %q of %s %s %s, want %+v", g, state, by, run, flow, status, x)
		}
	}
	if err := rows.Err(); err != nil || n != len(want) {
		t.Errorf("%d rows, err = %v, want %d", n, err, len(want))
	}
	var (
		run, flow, status, older, digest string
		owner                            store.EngineID
		alive                            bool
		check, finished                  sql.NullString
	)
	err = raw(t, path).QueryRowContext(t.Context(), `SELECT run, workflow, status, state, locked_by, owner_alive, next_check, finished_at, digest FROM runs`).
		Scan(&run, &flow, &status, &older, &owner, &alive, &check, &finished, &digest)
	if err != nil || run != "n-1" || flow != "w" || status != "parked" || older != status || owner != id || !alive || check.Valid || finished.Valid || digest != "d2" {
		t.Errorf("runs shows %s %s %s %d %v %v %v %s, err = %v", run, flow, status, owner, alive, check, finished, digest, err)
	}
}

// older makes a file of an earlier schema with one workflow in it.
func older(t *testing.T, schema int64) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	db = rawNew(t, path)
	p, err := migrator(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	must(t, db, `INSERT INTO definition VALUES ('d', x'01', 1)`)
	must(t, db, `INSERT INTO workflow VALUES (1, 'd', 'w')`)
	return path, db
}

// Tests open files that stay old.
func init() { migrationWait = 20 * time.Millisecond }

// A reader that starts while another process brings the schema up to date waits
// for it.
func TestReaderWaitsForMigration(t *testing.T) {
	was := migrationWait
	migrationWait = time.Minute
	t.Cleanup(func() { migrationWait = was })
	path, db := older(t, 1)
	type opened struct {
		s   *Store
		err error
	}
	ends := make(chan opened, 1)
	go func() {
		s, err := Open(t.Context(), path, Options{Beside: true})
		ends <- opened{s, err}
	}()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err := sql.Open("sqlite", dsn(path, "rw", "busy_timeout(10000)")); err != nil {
		t.Fatal(err)
	} else if err := errors.Join(migrate(t.Context(), db), db.Close()); err != nil {
		t.Fatal(err)
	}
	got := <-ends
	if got.err != nil {
		t.Fatalf("open: %v", got.err)
	}
	if err := got.s.Close(); err != nil {
		t.Error(err)
	}
}

// A file of the first schema is brought up to date with all that stands in it;
// its alerts get ids in the order of their time.
func TestMigrateFromTheFirst(t *testing.T) {
	path, db := older(t, 1)
	for run := range 2 {
		must(t, db, `INSERT INTO run VALUES (?1, 1, 6, 0, 0, 1, 1, NULL)`, run+1)
		must(t, db, `INSERT INTO journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, data) VALUES (?1, 0, 1, 1, 6, 0, 1, 1, x'01')`, run+1)
		must(t, db, `INSERT INTO run_name VALUES (?1, ?2, NULL)`, run+1, fmt.Sprint("n", run+1))
		must(t, db, `INSERT INTO alert VALUES (?1, 0, 0, ?2, 'parked', 's', 'c', 'm')`, run+1, 20-run)
		must(t, db, `INSERT INTO alert VALUES (?1, 0, 1, ?2, 'overdue', 's', 'c', 'm')`, run+1, 20-run)
	}
	var schema *store.SchemaError
	for _, o := range []Options{{ReadOnly: true}, {Beside: true}} {
		if _, err := Open(t.Context(), path, o); !errors.As(err, &schema) || schema.Have != 1 || schema.Want != schemaVersion {
			t.Errorf("%+v: err = %v, want a SchemaError that leaves the file alone", o, err)
		}
	}
	s := open(t, path, Options{})
	got, err := s.Undelivered(t.Context(), 10)
	if err != nil || len(got) != 4 {
		t.Fatalf("undelivered = %+v, err = %v, want 4", got, err)
	}
	for i, want := range []string{"n2 parked", "n2 overdue", "n1 parked", "n1 overdue"} {
		if g := got[i]; g.Name+" "+g.Kind != want || g.ID != int64(i+1) || g.Workflow != "w" {
			t.Errorf("alert %d = %+v, want %s", i, g, want)
		}
	}
	if _, rows, err := store.LoadRun(t.Context(), s, 2); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, err = %v, want what was there", len(rows), err)
	}
	if _, err := s.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb}); err != nil {
		t.Errorf("post: %v", err)
	}
}

// A file of the second schema keeps its rows, the steps of wide ones too, and
// may be written on.
func TestMigrateFromTheSecond(t *testing.T) {
	path, db := older(t, 2)
	must(t, db, `INSERT INTO run VALUES (1, 1, 2, 1, 0, 1, 1, NULL)`)
	const row = `INSERT INTO journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, steps, data) VALUES (1, ?1, 1, 1, 2, 1, 1, 7, ?2, ?3)`
	for seq, n := range []int{0, 1, 4, 5, 1000} {
		var steps []byte
		for i := range n {
			must(t, db, `INSERT INTO run_step VALUES (1, ?1, 0, ?2) ON CONFLICT DO NOTHING`, i, fmt.Sprint("s", i))
			steps = storekit.AppendStepRows(steps, []store.StepRow{{Node: int32(i), State: status.StepSucceeded, Attempt: seq + 1}})
		}
		must(t, db, row, seq, steps, []byte{byte(seq + 1)})
	}
	s := open(t, path, Options{})
	_, rows, err := store.LoadRun(t.Context(), s, 1)
	if err != nil || len(rows) != 5 || rows[4].Data[0] != 5 {
		t.Errorf("rows = %+v, err = %v, want five", rows, err)
	}
	steps, err := s.StepRows(t.Context(), 1)
	if err != nil || len(steps) != 1000 {
		t.Fatalf("%d steps, err = %v, want 1000", len(steps), err)
	}
	for _, st := range steps {
		if st.State != status.StepSucceeded || st.Attempt != 5 {
			t.Errorf("step %+v, want it succeeded in attempt 5", st)
		}
	}
	id, w := join(t, s)
	next := store.Transition{Run: 1, Seq: 5, At: time.Now(), Owner: &id, Data: []byte{6}, Steps: []store.StepRow{{Node: 3, State: status.StepFailed, Attempt: 6}}}
	if out, err := w.Commit(t.Context(), []store.Transition{next}); err != nil || !out[0].Landed {
		t.Errorf("commit: %+v, err = %v", out, err)
	}
	if steps, err := s.StepRows(t.Context(), 1); err != nil || steps[3].State != status.StepFailed || steps[4].State != status.StepSucceeded {
		t.Errorf("step = %+v, err = %v, want it failed", steps[3], err)
	}
}

// The view of a very wide run is that of a narrow one, many times. (Looking
// through all changes for each step, it would take minutes.)
func TestViewOfAWideRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _, w := populate(t, path)
	widen(t, w, 10_000)
	want, err := s.StepRows(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := raw(t, path).QueryContext(t.Context(), `SELECT node, step, state, attempt FROM steps WHERE run = 'n-1' ORDER BY node`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var (
			g     store.StepView
			state string
		)
		if err := rows.Scan(&g.Node, &g.Name, &state, &g.Attempt); err != nil {
			t.Fatal(err)
		}
		if x := want[n]; g.Node != x.Node || g.Name != x.Name || state != x.State.String() || g.Attempt != x.Attempt {
			t.Fatalf("view shows %+v in state %s, want %+v", g, state, x)
		}
	}
	if err := rows.Err(); err != nil || n != 10_003 {
		t.Errorf("%d rows, err = %v, want 10,003", n, err)
	}
}

// widen gives run 1 n instances, some of which have ended since in rows of
// their own.
func widen(t testing.TB, w store.Writer, n int) {
	t.Helper()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	next := store.Transition{Run: 1, Seq: 1, At: at, Data: []byte("1")}
	for i := range int32(n) {
		next.NewNodes = append(next.NewNodes, store.NodeName{Node: 3 + i, Step: 2, Name: fmt.Sprintf("c[%d]", i)})
		next.Steps = append(next.Steps, store.StepRow{Node: 3 + i, State: status.StepRunning, Attempt: 1, CompleteBy: at.Add(time.Hour)})
	}
	for seq := int32(1); ; seq++ {
		if out, err := w.Commit(t.Context(), []store.Transition{next}); err != nil || !out[0].Landed {
			t.Fatalf("commit: %+v, err = %v", out, err)
		}
		if seq == 200 {
			return
		}
		next = store.Transition{Run: 1, Seq: seq + 1, At: at, Data: []byte("1")}
		for i := range seq % 8 {
			next.Steps = append(next.Steps, store.StepRow{Node: 3 + (seq*8+i)%int32(n), State: status.StepSucceeded, Attempt: 2})
		}
	}
}

// A run without a name of its own has the same one in the views as everywhere.
func TestNamesThatFollowFromIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open(t, path, Options{})
	db := raw(t, path)
	for _, id := range []status.RunID{1, 35, 36, 1295, 1296, 1 << 40, 909_090_909_090_909, 1<<63 - 1} {
		must(t, db, `INSERT INTO run (run_id, workflow_id, state, owner, fence, next_check, created_at) VALUES (?1, 1, 2, 1, 0, 0, 0)`, int64(id))
		var name string
		if err := db.QueryRowContext(t.Context(), `SELECT run FROM run_public WHERE run_id = ?1`, int64(id)).Scan(&name); err != nil || name != naming.RunName(id) {
			t.Errorf("run %d is %q in the views, %q elsewhere, err = %v", id, name, naming.RunName(id), err)
		}
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
		if st, ok := status.ParseRunState(status.RunState(i).String()); ok != run.Valid || ok && run.String != st.String() {
			t.Errorf("run state %d is %q in the view, %v in the machine", i, run.String, status.RunState(i))
		}
		if s := status.StepState(i); step.Valid != !strings.HasPrefix(s.String(), "StepState(") || step.Valid && step.String != s.String() {
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
		"orphanList":    {orphanList, 3, "SEARCH x USING INDEX run_owned (owner=? AND run_id>?)"},
		"memberForget":  {memberForget, 1, "SEARCH run USING INDEX run_"},
		"runLoad":       {runLoad, 1, "SEARCH j USING INDEX sqlite_autoindex_journal_1 (run_id=?)"},
		"rowList":       {rowList, 3, "SEARCH j USING INDEX sqlite_autoindex_journal_1 (run_id=? AND seq>?)"},
		"journalWriter": {journalWriter, 2, "SEARCH journal USING INDEX sqlite_autoindex_journal_1 (run_id=? AND seq=?)"},
		"runBecome":     {runBecome, 6, "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)"},
		"runTake":       {runTake, 4, "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)"},
		"runCheck":      {runCheck, 2, "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)"},
		"runNameHolder": {runNameHolder, 1, "SEARCH run_name USING"},
		"contextHolder": {contextHolder, 3, "SEARCH c USING PRIMARY KEY (workflow=? AND key=?)"},
		"runList":       {runList, 8, "SEARCH r USING INTEGER PRIMARY KEY (rowid<?)"}, // in the order of the list, up to its limit
		"runListByKey":  {runListByKey, 9, "SEARCH n USING INDEX run_name_key (key=? AND rowid<?)"},
		"runFindByName": {runFindByName, 2, "SEARCH n USING INDEX"},
		"runFindByID":   {runFindByID, 2, "SEARCH r USING INTEGER PRIMARY KEY"},
		"runListByIDs":  {runListByIDs, 2, "SEARCH r USING INTEGER PRIMARY KEY"},
		"runChildren":   {runChildren, 4, "SEARCH n USING INDEX run_name_parent (parent=? AND run_id>?)"},
		"stepSource":    {stepSource, 1, "SEARCH journal USING INDEX sqlite_autoindex_journal_1 (run_id=?)"},
		"alertList":     {alertList, 1, "USING INDEX alert_at"},

		"alertListOfRun":   {alertListOfRun, 2, "SEARCH a USING INDEX alert_run (run_id=?)"},
		"alertUndelivered": {alertUndelivered, 1, "SCAN a USING INDEX alert_undelivered"},
		"alertDelivered":   {alertDelivered, 2, "SEARCH alert USING INTEGER PRIMARY KEY"},
		"inboxRuns":        {inboxRuns, 4, "SEARCH r USING INTEGER PRIMARY KEY"},
		"inboxAddressed":   {inboxAddressed, 1, "SEARCH r USING INTEGER PRIMARY KEY"},
		"inboxList":        {inboxList, 3, "SEARCH inbox USING INDEX sqlite_autoindex_inbox_1 (run_id=?)"},
		"inboxFind":        {inboxFind, 2, "SEARCH inbox USING COVERING INDEX sqlite_autoindex_inbox_1 (run_id=? AND dedup=?)"},
		"inboxSize":        {inboxSize, 2, "SEARCH inbox USING INDEX sqlite_autoindex_inbox_1 (run_id=?)"},
		"inboxDrop":        {inboxDrop, 2, "SEARCH inbox USING INTEGER PRIMARY KEY"},
		"runOverdue":       {runOverdue, 4, "SEARCH r USING INDEX run_active (owner=? AND next_check<?)"},
		"headMany":         {headMany, 1, "SEARCH r USING INTEGER PRIMARY KEY"},
		"rowMany":          {rowMany, 1, "SEARCH j USING INDEX sqlite_autoindex_journal_1 (run_id=?)"},
		"lateList":         {lateList, 1, "SEARCH late_reply USING INDEX sqlite_autoindex_late_reply_1 (run_id=?)"},
		"logList":          {logList, 3, "SEARCH log USING INDEX log_run (run_id=? AND id>?)"},
		"retainRuns":       {retainRuns, 4, "SEARCH r USING INTEGER PRIMARY KEY (rowid>?)"},
		"retainStays":      {retainStays, 4, "SEARCH inbox USING"},
		"retainOwn":        {retainOwn, 0, "SEARCH workflow USING COVERING INDEX workflow_retention"},
		"retainKey":        {retainKey, 3, "SEARCH context USING PRIMARY KEY (workflow=? AND key=?)"},
		"retainRun":        {retainRun, 1, "SEARCH run USING INTEGER PRIMARY KEY"},
		"goneRuns":         {goneRuns, 1, "SCAN gone"},
		"goneRows 0":       {goneRows[0], 1, "SEARCH journal USING COVERING INDEX sqlite_autoindex_journal_1 (run_id=?)"},
		"goneRows 1":       {goneRows[1], 1, "SEARCH wide USING COVERING INDEX sqlite_autoindex_wide_1 (run_id=?)"},
		"goneRows 2":       {goneRows[2], 1, "SEARCH run_step USING PRIMARY KEY (run_id=? AND node=?)"},
		"goneRows 3":       {goneRows[3], 1, "SEARCH alert USING COVERING INDEX alert_run (run_id=?)"},
		"goneRows 4":       {goneRows[4], 1, "SEARCH notice USING PRIMARY KEY (run_id=?)"},
		"goneRows 5":       {goneRows[5], 1, "SEARCH late_reply USING COVERING INDEX sqlite_autoindex_late_reply_1 (run_id=?)"},
		"goneRows 6":       {goneRows[6], 1, "SEARCH log USING COVERING INDEX log_run (run_id=?)"},
		"snapshotDrop":     {snapshotDrop, 1, "SEARCH snapshot USING INTEGER PRIMARY KEY"},
		"snapshotKeep":     {snapshotKeep, 5, "SEARCH journal EXISTS USING INDEX sqlite_autoindex_journal_1 (run_id=? AND seq=?)"},
		"snapshotRuns":     {snapshotRuns, 1, "SEARCH s USING INTEGER PRIMARY KEY"},
		"runLoadShort":     {runLoadShort, 1, "SEARCH journal USING INDEX sqlite_autoindex_journal_1 (run_id=? AND seq>?)"},
		"goneRows 10":      {goneRows[10], 1, "SEARCH reply USING PRIMARY KEY (run_id=?)"},
		"goneRows 11":      {goneRows[11], 1, "SEARCH context USING INDEX context_next (next_run=?)"},
		"goneRows 12":      {goneRows[12], 1, "SEARCH run_moved USING INTEGER PRIMARY KEY"},
		"keyState":         {keyState, 3, "SEARCH c USING PRIMARY KEY (workflow=? AND key=?)"},
		"keyNext":          {keyNext, 3, "USING INDEX context_next"},
		"keyOf":            {keyOf, 1, "SEARCH n USING INTEGER PRIMARY KEY"},
		"replyNext":        {replyNext, 2, "SEARCH p USING INDEX reply_open (sink=?)"},
		"replyNextDue":     {replyNextDue, 3, "SEARCH p USING INDEX reply_open (sink=? AND due<?)"},
		"replyWaiting":     {replyWaiting, 2, "SEARCH p USING INDEX reply_open (sink=?)"},
		"replyOfRun":       {replyOfRun, 1, "SEARCH p USING PRIMARY KEY (run_id=?)"},
		"replyDone":        {replyDone, 2, "SEARCH reply USING PRIMARY KEY (run_id=? AND n=?)"},
		"replyHold":        {replyClaimed, 3, "SEARCH reply USING PRIMARY KEY (run_id=? AND n>?)"},
		"replyDue":         {replyDue, 4, "reply EXISTS USING COVERING INDEX reply_open (sink=? AND due<?)"},
		"replyLag":         {replyLag, 4, "SEARCH reply USING COVERING INDEX reply_open (sink=?)"},
		"goneRows 8":       {goneRows[8], 1, "SEARCH place USING INTEGER PRIMARY KEY"},
		"retainGoal":       {retainGoal, 3, "SEARCH context USING PRIMARY KEY (workflow=? AND key=?)"},
		"retainGoals":      {retainGoals, 2, "context_ended_at"},
		"goalOne":          {goalOne, 5, "SEARCH c USING PRIMARY KEY (workflow=? AND key=?"},
		"goalsAll":         {goalsAll, 5, "SEARCH c USING PRIMARY KEY ("},
		"goalReset":        {goalReset, 3, "SEARCH context USING PRIMARY KEY (workflow=? AND key=?)"},
		"resetsOfRun":      {resetsOfRun, 1, "SEARCH goal_reset USING INDEX goal_reset_run (run_id=?)"},
		"placeTaken":       {placeTaken, 2, "SEARCH p USING COVERING INDEX place_held (workflow=? AND key=?)"},
		"placeWaits":       {placeWaits, 2, "SEARCH p USING COVERING INDEX place_line (workflow=? AND key=?)"},
		"placeSweep":       {placeSweep, 2, "SEARCH place USING COVERING INDEX place_held (workflow=? AND key=?)"},
		"placeLines":       {placeLines, 0, "SEARCH p USING COVERING INDEX place_line"},
		"placeNext":        {placeNext, 4, "SEARCH p USING INDEX place_line (workflow=? AND key=?)"},
		"placeHolders":     {placeHolders, 3, "SEARCH p USING COVERING INDEX place_held (workflow=? AND key=?)"},
		"noticeOpen":       {noticeOpen, 4, "SEARCH notice USING COVERING INDEX notice_open"},
		"noticeDone":       {noticeDone, 3, "SEARCH notice USING PRIMARY KEY (run_id=? AND seq=? AND state=?)"},
		"noticeOfRun":      {noticeOfRun, 1, "SEARCH notice USING PRIMARY KEY (run_id=?)"},
		"steps":            {"SELECT * FROM steps WHERE run_id = ?1", 1, "SEARCH journal USING INDEX sqlite_autoindex_journal_1 (run_id=?)"},
		"logTrim":          {logTrim, 2, "SEARCH log USING COVERING INDEX log_run (run_id=? AND id<?)"},
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
		scans := regexp.MustCompile(`SCAN (run|r|x|journal|j|wide|run_name|n|alert|a|late_reply|log|snapshot|s|notice|reply|p|q|d|run_moved)\b.*`).FindAllString(plan.String(), -1)
		for _, scan := range scans {
			// Lists begin at one end of an index and stop at their limit.
			if name != "runList" && !strings.Contains(scan, "USING INDEX alert_") && !strings.Contains(scan, "VIRTUAL TABLE") {
				t.Errorf("%s: plan reads everything:\n%s", name, &plan)
			}
		}
	}
}
