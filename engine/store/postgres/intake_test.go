package postgres

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// published makes a workflow w with one variable n, and returns the store.
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
	must(t, admin, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA engine TO %[1]s; GRANT EXECUTE ON FUNCTION engine.submit(text, jsonb, text) TO %[1]s`, role))
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
	for i := range 10 {
		wg.Go(func() {
			_, err := db.ExecContext(t.Context(), `SELECT engine.submit('w', pg_catalog.jsonb_build_object('n', $1::int), 'same')`, i)
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
	must(t, db, `SELECT engine.submit('w', '{"n":10}', 'same')`)
	if list, err = s.Submissions(t.Context(), 0, 10); err != nil || len(list) != 1 || string(list[0].Input) != `{"n": 10}` {
		t.Fatalf("submissions = %+v, %v, want the new input", list, err)
	}
	if err := s.Accept(t.Context(), list[0].ID, 99); err != nil {
		t.Fatal(err)
	}
	if got := submittedRuns(t, s); len(got) != 0 {
		t.Errorf("an accepted submission waits: %v", got)
	}
}
