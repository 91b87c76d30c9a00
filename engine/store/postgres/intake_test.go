package postgres

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// publishedWorkflow makes a workflow w with one variable n, and returns the store.
func publishedWorkflow(t *testing.T, dsn string) *Store {
	t.Helper()
	s := open(t, dsn)
	ids, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	variables := `[{"name":"n","type":"number","required":true,"nullable":false,"sensitive":false}]`
	if err := s.Publish(t.Context(), schedules.Workflow{Name: "w", ID: ids["w"], Given: []byte("g"), Variables: []byte(variables)}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// submittedRuns returns the runs of the submissions that wait, in order.
func submittedRuns(t *testing.T, s *Store) (runs []string) {
	t.Helper()
	list, err := s.Submissions(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if x.Workflow != "w" || x.WorkflowID == 0 || string(x.Given) != "g" || x.At.IsZero() || x.By == "" {
			t.Errorf("submission = %+v", x)
		}
		runs = append(runs, x.Run)
	}
	return runs
}

// S54: a program that may only call engine.submit submits runs in its own transactions.
func TestSubmitAsAnotherProgram(t *testing.T) {
	dsn := migrated(t)
	s := publishedWorkflow(t, dsn)
	role := "app_" + strings.ToLower(t.Name())
	admin := raw(t, dsn)
	must(t, admin, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA engine TO %[1]s; GRANT EXECUTE ON FUNCTION engine.submit TO %[1]s`, role))
	t.Cleanup(func() {
		for _, q := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if err := pgtest.Exec(t.Context(), dsn, q); err != nil {
				t.Log(err) // the role goes with the server
			}
		}
	})
	app := func() *sql.Conn {
		c, err := admin.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ExecContext(t.Context(), "SET ROLE "+role); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := app()
	defer c.Close()
	for _, q := range []string{"SELECT * FROM engine.submission", "INSERT INTO engine.submission (run, workflow, input, submitted_by) VALUES ('x', 'w', '{}', 'me')", "SELECT * FROM engine.run"} {
		if _, err := c.ExecContext(t.Context(), q); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v, want no permission", q, err)
		}
	}
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		for _, q := range []string{"BEGIN", `SELECT engine.submit('w', '{"n":1}', 'run-` + strings.ToLower(end) + `')`, end} {
			if _, err := c.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	var made string
	if err := c.QueryRowContext(t.Context(), `SELECT engine.submit('w', '{"n":1}')`).Scan(&made); err != nil || !strings.HasPrefix(made, "s-") {
		t.Errorf("the id that the database makes: %q, %v", made, err)
	}
	if got, want := submittedRuns(t, s), "run-commit "+made; strings.Join(got, " ") != want {
		t.Errorf("submissions = %v, want %s", got, want)
	}
}

// Many programs submit the same run at the same time: there is one submission. When it was refused,
// submitting it again lets engines try again.
func TestSubmitTwice(t *testing.T) {
	dsn := migrated(t)
	s := publishedWorkflow(t, dsn)
	db := raw(t, dsn)
	var wg sync.WaitGroup
	errs := make(chan error, 10)
	for range 10 {
		wg.Go(func() {
			_, err := db.ExecContext(t.Context(), `SELECT engine.submit('w', '{"n":1}', 'same')`)
			errs <- err
		})
	}
	wg.Wait()
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	list, err := s.Submissions(t.Context(), 0, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("submissions = %+v, %v", list, err)
	}
	must(t, db, `INSERT INTO engine.published (workflow, workflow_id, published_by, given) SELECT 'v', workflow_id, 'test', '' FROM engine.published`)
	for q, want := range map[string]string{
		`SELECT engine.submit('w', '{"n":2}', 'same')`: "submission 'same' waits already, with another input",
		`SELECT engine.submit('v', '{}', 'same')`:      "submission 'same' waits already, for workflow w",
	} {
		if _, err := db.ExecContext(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) || sqlstate(err) != "23505" {
			t.Errorf("%s: %v, want %q", q, err, want)
		}
	}
	if err := s.Refuse(t.Context(), list[0].ID, "n must be above 9"); err != nil {
		t.Fatal(err)
	}
	if got := submittedRuns(t, s); len(got) != 0 {
		t.Errorf("a refused submission waits: %v", got)
	}
	var status, why string
	if err := db.QueryRowContext(t.Context(), `SELECT status, refused FROM engine.submissions WHERE run = 'same'`).Scan(&status, &why); err != nil || status != "refused" || why != "n must be above 9" {
		t.Errorf("view: %s, %s, %v", status, why, err)
	}
	must(t, db, `SELECT engine.submit('w', '{"n":11}', 'other')`)
	refused := list[0].ID
	must(t, db, `SELECT engine.submit('w', '{"n":10}', 'same')`)
	// Another engine may still have the refused submission. It must not touch the new one.
	if err := errors.Join(s.Refuse(t.Context(), refused, "too late"), s.Accept(t.Context(), refused)); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Submissions(t.Context(), 0, 10); err != nil || len(list) != 2 || list[0].Run != "other" || list[1].Run != "same" || string(list[1].Input) != `{"n": 10}` {
		t.Fatalf("submissions = %+v, %v, want the new input, after the other run", list, err)
	}
	if err := s.Accept(t.Context(), list[0].ID, list[1].ID, 99); err != nil {
		t.Fatal(err)
	}
	if got := submittedRuns(t, s); len(got) != 0 {
		t.Errorf("an accepted submission waits: %v", got)
	}
}

// A refused submission is counted and found with its reason, also if an engine of an earlier version has
// refused it. Retention removes it after the same time as runs, but not before 7 days.
func TestRefusedSubmissions(t *testing.T) {
	dsn := migrated(t)
	s := publishedWorkflow(t, dsn)
	db := raw(t, dsn)
	if r, err := s.RefusedSubmissions(t.Context()); err != nil || r.Count != 0 || r.Oldest.Run != "" {
		t.Errorf("an empty database: %+v, %v", r, err)
	}
	if _, err := s.FindSubmission(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("find a submission that does not exist: %v", err)
	}
	for _, run := range []string{"a", "b", "c", "d"} {
		must(t, db, `SELECT engine.submit('w', '{"n":1}', $1)`, run)
	}
	if x, err := s.FindSubmission(t.Context(), "b"); err != nil || x.Run != "b" || x.Workflow != "w" || x.Refused != "" || !x.RefusedAt.IsZero() || x.At.IsZero() {
		t.Errorf("a submission that waits: %+v, %v", x, err)
	}
	list, err := s.Submissions(t.Context(), 0, 10)
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	before := time.Now()
	for _, x := range list[1:] {
		if err := s.Refuse(t.Context(), x.ID, "no "+x.Run); err != nil {
			t.Fatal(err)
		}
	}
	must(t, db, `UPDATE engine.submission SET refused_at = NULL, submitted_at = now() - interval '8 days' WHERE run = 'c'`)
	if x, err := s.FindSubmission(t.Context(), "b"); err != nil || x.Refused != "no b" || x.RefusedAt.Before(before.Add(-time.Minute)) {
		t.Errorf("a refused submission: %+v, %v", x, err)
	}
	if r, err := s.RefusedSubmissions(t.Context()); err != nil || r.Count != 3 || r.Oldest.Run != "c" || r.Oldest.Refused != "no c" || r.Oldest.RefusedAt.After(before) {
		t.Errorf("refused: %+v, %v", r, err)
	}
	must(t, db, `UPDATE engine.submission SET refused_at = now() - interval '6 days' WHERE run = 'd'`)
	kept := func(before time.Time, want string) {
		t.Helper()
		if _, err := s.Retain(t.Context(), before, 100); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := db.QueryRow(`SELECT string_agg(run, ' ' ORDER BY run) FROM engine.submission`).Scan(&got); err != nil || got != want {
			t.Errorf("submissions %s, %v, want %s", got, err, want)
		}
	}
	kept(time.Time{}, "a b c d")                      // nothing is removed without --retention
	kept(time.Now().Add(-10*24*time.Hour), "a b c d") // retention is 10 days
	kept(time.Now().Add(-time.Hour), "a b d")         // retention is an hour, so 7 days count
	must(t, db, `UPDATE engine.submission SET refused_at = now() - interval '8 days' WHERE run = 'd'`)
	must(t, db, `UPDATE engine.workflow SET retention = 9 * 24 * 3600 * 1000000::int8`)
	kept(time.Now().Add(-time.Hour), "a b d") // the workflow has its own retention
	must(t, db, `UPDATE engine.workflow SET retention = 3600 * 1000000::int8`)
	kept(time.Time{}, "a b")
}

// What a submission says beyond the input: a time by which the run must start, a priority, and an agent
// that takes its replies. Each mistake is an error of the statement, and nothing is stored.
func TestSubmitOptions(t *testing.T) {
	dsn := migrated(t)
	s := publishedWorkflow(t, dsn)
	db := raw(t, dsn)
	for q, want := range map[string]string{
		`start_by => 'infinity'`:    "start_by is a time from the year 2000 to the year 9999",
		`start_by => '1999-01-01Z'`: "start_by is a time",
		`priority => 101`:           "priority is from 0 to 100, not 101",
		`priority => -1`:            "priority is from 0 to 100, not -1",
		`reply_to => 'agent:shop'`:  "is no reply sink",
		`reply_to => 'mail:x'`:      "is no reply sink",
		`reply_to => 'table:a b'`:   "is no reply sink",
		`reply_to => 'table:q', correlation => repeat('x', 201)`: "at most 200 bytes",
		`correlation => 'x'`:        "needs a reply sink",
		`run => repeat('x', 10240)`: "cannot be the id of a run",
		`run => E'a\nb'`:            "cannot be the id of a run",
	} {
		if _, err := db.ExecContext(t.Context(), `SELECT engine.submit('w', '{"n":1}', `+q+`)`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", q, err, want)
		}
	}
	if got := submittedRuns(t, s); len(got) != 0 {
		t.Fatalf("a refused submission is stored: %v", got)
	}
	must(t, db, `SELECT engine.submit('w', '{"n":1}', start_by => '2030-01-02 03:04:05Z', priority => 0, run => 'all', reply_to => 'agent:shop.told', correlation => 'c')`)
	must(t, db, `SELECT engine.submit('w', '{"n":1}', 'all', priority => 7)`) // changes nothing
	must(t, db, `SELECT engine.submit('w', '{"n":1}', 'none')`)
	list, err := s.Submissions(t.Context(), 0, 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("submissions = %+v, %v", list, err)
	}
	if x := list[0]; x.Priority == nil || *x.Priority != 0 || !x.StartBy.Equal(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)) || x.ReplyTo != "agent:shop.told" || x.Correlation != "c" {
		t.Errorf("all options: %+v", x)
	}
	if x := list[1]; x.Priority != nil || !x.StartBy.IsZero() || x.ReplyTo != "" {
		t.Errorf("no options: %+v", x)
	}
	// A workflow that was published with its sinks takes only these.
	for sinks, want := range map[string]string{"": "has no agent action", "agent:shop.heard": "has no agent action", "agent:shop.told": ""} {
		w := schedules.Workflow{Name: "w", ID: list[0].WorkflowID, Given: []byte("g"), Variables: []byte("[]"), Sinks: strings.Fields(sinks)}
		if err := s.Publish(t.Context(), w, nil); err != nil {
			t.Fatal(err)
		}
		_, err := db.ExecContext(t.Context(), `SELECT engine.submit('w', '{}', reply_to => 'agent:shop.told')`)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("sinks %q: %v, want %q", sinks, err, want)
		}
	}
}

// A role that could submit before a migration still can, and the calls of older programs still work.
func TestSubmitKeepsRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	migrateTo(t, db, 25)
	role := "app_" + strings.ToLower(t.Name())
	must(t, db, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA engine TO %[1]s; GRANT EXECUTE ON FUNCTION engine.submit(text, jsonb, text) TO %[1]s`, role))
	t.Cleanup(func() {
		for _, q := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if err := pgtest.Exec(t.Context(), dsn, q); err != nil {
				t.Log(err) // the role goes with the server
			}
		}
	})
	if _, _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	var may, public bool
	err := db.QueryRow(`SELECT has_function_privilege($1, p.oid, 'EXECUTE'), has_function_privilege('public', p.oid, 'EXECUTE') FROM pg_proc p WHERE p.oid = 'engine.submit'::regproc`, role).Scan(&may, &public)
	if err != nil || !may || public {
		t.Errorf("the role may submit: %t, all roles: %t, %v", may, public, err)
	}
	s := publishedWorkflow(t, dsn)
	for _, q := range []string{
		`SELECT engine.submit('w', '{"n":1}')`, `SELECT engine.submit('w', '{"n":1}', 'a')`, `SELECT engine.submit('w', '{"n":1}', 'b', 'table:q')`,
		`SELECT engine.submit('w', '{"n":1}', 'c', 'table:q', 'corr')`, `SELECT engine.submit(workflow => 'w', input => '{"n":1}', run => 'd', reply_to => 'table:q')`,
	} {
		must(t, db, q)
	}
	if got := submittedRuns(t, s); len(got) != 5 {
		t.Errorf("submissions = %v", got)
	}
}

// A submission in a prepared transaction starts nothing until that transaction is committed, and nothing
// at all if it is rolled back. PostgreSQL refuses to prepare a transaction with NOTIFY, which a
// submission uses if no other one waits.
func TestSubmitInAPreparedTransaction(t *testing.T) {
	dsn := migrated(t)
	s := publishedWorkflow(t, dsn)
	c, err := raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	gid := dbName(t, dsn)
	prepare := func(run string) (err error) {
		for _, q := range []string{"BEGIN", `SELECT engine.submit('w', '{"n":1}', '` + run + `')`, `PREPARE TRANSACTION '` + gid + `'`} {
			if _, err = c.ExecContext(t.Context(), q); err != nil {
				break
			}
		}
		return err
	}
	if err := prepare("first"); err == nil || !strings.Contains(err.Error(), "NOTIFY") {
		t.Errorf("prepare with NOTIFY: %v", err)
	}
	if got := submittedRuns(t, s); len(got) != 0 {
		t.Errorf("submissions = %v, want none", got)
	}
	must(t, raw(t, dsn), `SELECT engine.submit('w', '{"n":1}', 'other')`)
	for end, want := range map[string]string{"ROLLBACK": "other", "COMMIT": "other forgotten"} {
		if err := prepare("forgotten"); err != nil {
			t.Fatal(err)
		}
		if got := submittedRuns(t, s); len(got) != 1 {
			t.Errorf("submissions = %v, want one: the other one is only prepared", got)
		}
		found, err := s.Examine(t.Context())
		if err != nil || !slices.ContainsFunc(found, func(f health.Finding) bool { return f.Name == "prepared" }) {
			t.Errorf("findings = %+v, %v", found, err)
		}
		if _, err := c.ExecContext(t.Context(), end+` PREPARED '`+gid+`'`); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(submittedRuns(t, s), " "); got != want {
			t.Errorf("%s: submissions = %s, want %s", end, got, want)
		}
		if end == "COMMIT" {
			must(t, raw(t, dsn), `DELETE FROM engine.submission WHERE run = 'forgotten'`)
		}
	}
}
