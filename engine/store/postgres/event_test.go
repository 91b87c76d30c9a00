package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

// S101: a program that may only call engine.emit, or only insert, sends events in its own
// transactions. A transaction that does not commit sends none.
func TestEmitAsAnotherProgram(t *testing.T) {
	dsn := migrated(t)
	s := publishedWorkflow(t, dsn)
	role := "app_" + strings.ToLower(t.Name())
	admin := raw(t, dsn)
	must(t, admin, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA engine TO %[1]s; GRANT EXECUTE ON FUNCTION engine.emit(text, jsonb, text) TO %[1]s;
GRANT INSERT (type, data, id) ON engine.events TO %[1]s`, role))
	t.Cleanup(func() {
		for _, q := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if err := pgtest.Exec(t.Context(), dsn, q); err != nil {
				t.Log(err) // the role goes with the server
			}
		}
	})
	c, err := admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "SET ROLE "+role); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]string{
		"SELECT * FROM engine.events":                                                   "permission denied",
		"INSERT INTO engine.events (type, sent_by) VALUES ('t', 'other')":               "permission denied",
		"SELECT engine.emit('order placed')":                                            "cannot be the type of an event",
		"SELECT engine.emit(NULL)":                                                      "cannot be the type of an event",
		"SELECT engine.emit('t', '{}', '')":                                             "cannot be the id of an event",
		"SELECT engine.emit('t', '{}', E'a\\nb')":                                       "cannot be the id of an event",
		"SELECT engine.emit('t', pg_catalog.to_jsonb(pg_catalog.repeat('x', 2000000)))": "more than 1 MiB",
		"INSERT INTO engine.events (type) VALUES ('order placed')":                      "events_type",
		"INSERT INTO engine.events (type, id) VALUES ('t', '')":                         "events_id",
	} {
		if _, err := c.ExecContext(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", q, err, want)
		}
	}
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		id := strings.ToLower(end)
		for _, q := range []string{"BEGIN", `SELECT engine.emit('order.placed', '{"n":1}', 'emit-` + id + `')`, `SELECT engine.emit('order.placed', '{"n":2}', 'emit-` + id + `')`,
			`INSERT INTO engine.events (type, data, id) VALUES ('order.paid', '{"n":1}', 'row-` + id + `')`, end} {
			if _, err := c.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	var made string
	if err := c.QueryRowContext(t.Context(), `SELECT engine.emit('order.placed')`).Scan(&made); err != nil || len(made) != 36 {
		t.Errorf("the id that the database makes: %q, %v", made, err)
	}
	list, err := s.ClaimEvents(t.Context(), 100, time.Hour)
	if err != nil || len(list) != 3 {
		t.Fatalf("events = %+v, %v", list, err)
	}
	for i, want := range []string{`emit-commit order.placed {"n": 1}`, `row-commit order.paid {"n": 1}`, made + " order.placed {}"} {
		if e := list[i]; e.ID+" "+e.Type+" "+string(e.Data) != want || e.By == "" || e.At.IsZero() {
			t.Errorf("event %d = %+v, want %s", i, e, want)
		}
	}
}

// S74: an event wakes engines up.
func TestEventsWake(t *testing.T) {
	dsn := migrated(t)
	s := open(t, dsn)
	db := raw(t, dsn)
	wakes := s.Wakes(t.Context())
	must(t, db, `SELECT engine.emit('t', '{}', 'a')`)
	select {
	case _, ok := <-wakes:
		if !ok {
			t.Fatal("the channel is closed")
		}
	case <-t.Context().Done():
		t.Fatal("no hint")
	}
	list, err := s.ClaimEvents(t.Context(), 10, time.Hour)
	if err != nil || len(list) != 1 || list[0].ID != "a" {
		t.Errorf("events = %+v, %v", list, err)
	}
}
