package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// An sslmode is always set: the driver's default differs from version to
// version (security.md, Downgraded TLS).
func TestSSLMode(t *testing.T) {
	for dsn, want := range map[string]pq.SSLMode{
		"postgres://u@db.example.com/x":                       pq.SSLModeVerifyFull,
		"postgresql://u@10.0.0.5:5433/x":                      pq.SSLModeVerifyFull,
		"host=db.example.com dbname=x":                        pq.SSLModeVerifyFull,
		"host=127.0.0.1,db.example.com dbname=x":              pq.SSLModeVerifyFull,
		"host=127.0.0.1 hostaddr=10.0.0.5 dbname=x":           pq.SSLModeVerifyFull,
		"postgres://u@localhost.example.com/x":                pq.SSLModeVerifyFull,
		"postgres://u@localhost/x":                            pq.SSLModeDisable,
		"postgres://u@127.0.0.1:5433/x":                       pq.SSLModeDisable,
		"postgres://u@[::1]/x":                                pq.SSLModeDisable,
		"postgres:///x":                                       pq.SSLModeDisable,
		"host=/var/run/postgresql dbname=x":                   pq.SSLModeDisable,
		"dbname=x":                                            pq.SSLModeDisable,
		"postgres://u@db.example.com/x?sslmode=require":       pq.SSLModeRequire,
		"postgres://u@localhost/x?sslmode=verify-full":        pq.SSLModeVerifyFull,
		"host=db.example.com dbname=x sslmode=disable":        pq.SSLModeDisable,
		"postgres://u@db.example.com/x?sslmode=verify-ca":     pq.SSLModeVerifyCA,
		"postgres://u:p%40ss@db.example.com:99/x?a_setting=1": pq.SSLModeVerifyFull,
	} {
		src, err := parse(dsn)
		if err != nil || src.cfg.SSLMode != want || !src.cfg.BinaryParameters {
			t.Errorf("%s: sslmode = %q, err = %v, want %q", dsn, src.cfg.SSLMode, err, want)
		}
	}
	t.Setenv("PGSSLMODE", "require")
	if src, err := parse("postgres://u@db.example.com/x"); err != nil || src.cfg.SSLMode != pq.SSLModeRequire {
		t.Errorf("PGSSLMODE=require: sslmode = %q, err = %v", src.cfg.SSLMode, err)
	}
}

// I13: no message holds a password, whatever is wrong with the DSN.
func TestNoPasswordInErrors(t *testing.T) {
	dsn := pgtest.DSN(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "canary-7f3a"
	with := func(change func(*url.URL)) string {
		c := *u
		c.User = url.UserPassword(u.User.Username(), secret)
		change(&c)
		return c.String()
	}
	for name, dsn := range map[string]string{
		"wrong password": with(func(*url.URL) {}),
		"no database":    with(func(u *url.URL) { u.Path = "/none" }),
		"no server":      with(func(u *url.URL) { u.Host = closedPort(t) }),
		"bad port":       "postgres://u:" + secret + "@localhost:port/x",
		"slash in it":    "postgres://u:" + secret + "/" + secret + "@localhost/x",
		"bad escape":     "postgres://u:%zz" + secret + "@localhost/x",
		"not a DSN":      "password=" + secret + " " + secret,
		"bad option":     "host=localhost password=" + secret + " sslmode=" + secret,
		"empty":          " ",
	} {
		for call, try := range map[string]func() error{
			"open":    func() error { _, err := Open(t.Context(), dsn, Options{}); return err },
			"migrate": func() error { _, _, err := Migrate(t.Context(), dsn); return err },
			"status":  func() error { _, err := Status(t.Context(), dsn); return err },
		} {
			if err := try(); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %s: err = %v, want one without the password", name, call, err)
			}
		}
	}
	src, err := parse(with(func(*url.URL) {}))
	if err != nil || strings.Contains(src.mismatch(0).Error(), secret) {
		t.Errorf("hint = %v, err = %v, want one without the password", src.mismatch(0), err)
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A server that is away, has no such database, or does not let us in is named,
// with what to do.
func TestUnreachable(t *testing.T) {
	dsn := pgtest.DSN(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*url.URL)
		want   []string
	}{
		"no server":   {func(u *url.URL) { u.Host = closedPort(t) }, []string{"refused", "is the server running"}},
		"no database": {func(u *url.URL) { u.Path = "/none" }, []string{`"none" does not exist`, "CREATE DATABASE"}},
		"no entry":    {func(u *url.URL) { u.User = url.UserPassword("nobody", "x") }, []string{"authentication failed", "check user and password"}},
		"no TLS":      {func(u *url.URL) { u.RawQuery = "sslmode=require" }, []string{"SSL is not enabled", "sslmode"}},
	} {
		change := *u
		c.change(&change)
		_, err := Open(t.Context(), change.String(), Options{})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: err = %v, want it to say %q", name, err, want)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	if _, err := Open(t.Context(), "dbname=x", Options{MaxConns: -1}); err == nil || !strings.Contains(err.Error(), "MaxConns") {
		t.Errorf("err = %v, want it to name MaxConns", err)
	}
}

// An unmigrated or too new schema is a *SchemaError with the command that
// repairs it.
func TestSchemaVersions(t *testing.T) {
	dsn := pgtest.DSN(t)
	var schema *store.SchemaError
	if _, err := Open(t.Context(), dsn, Options{}); !errors.As(err, &schema) || schema.Have != 0 || schema.Want != schemaVersion ||
		!strings.Contains(err.Error(), "engine db migrate --dsn 'postgres://") {
		t.Errorf("unmigrated: err = %v", err)
	}
	if st, err := Status(t.Context(), dsn); err != nil || st != (SchemaStatus{0, schemaVersion}) {
		t.Errorf("status = %+v, err = %v", st, err)
	}
	if from, to, err := Migrate(t.Context(), dsn); err != nil || from != 0 || to != schemaVersion {
		t.Errorf("migrate: %d to %d, err = %v", from, to, err)
	}
	if from, to, err := Migrate(t.Context(), dsn); err != nil || from != schemaVersion || to != schemaVersion {
		t.Errorf("migrate again: %d to %d, err = %v", from, to, err)
	}
	open(t, dsn)
	must(t, raw(t, dsn), `INSERT INTO engine.schema_version (version_id, is_applied) VALUES (999, true)`)
	for name, try := range map[string]func() error{
		"open":    func() error { _, err := Open(t.Context(), dsn, Options{}); return err },
		"migrate": func() error { _, _, err := Migrate(t.Context(), dsn); return err },
	} {
		if err := try(); !errors.As(err, &schema) || schema.Have != 999 || !strings.Contains(err.Error(), "newer") {
			t.Errorf("%s of a newer schema: err = %v", name, err)
		}
	}
}

// The constant and the migrations agree.
func TestSchemaVersionIsTheLastMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil || len(files) != schemaVersion {
		t.Errorf("%d migrations, err = %v, want %d", len(files), err, schemaVersion)
	}
}

// Several callers at once migrate once.
func TestMigrateTogether(t *testing.T) {
	dsn := pgtest.DSN(t)
	var wg sync.WaitGroup
	first := make(chan int64, 4)
	for range 4 {
		wg.Go(func() {
			from, to, err := Migrate(t.Context(), dsn)
			if err != nil || to != schemaVersion {
				t.Errorf("migrate: to %d, err = %v", to, err)
			}
			if from == 0 {
				first <- to
			}
		})
	}
	wg.Wait()
	if len(first) != 1 {
		t.Errorf("%d callers found an empty database, want 1", len(first))
	}
}

// A backend that is killed in the middle of a commit leaves its outcome
// unknown: it is sent again under the same token, and lands once (T3).
func TestKilledBackend(t *testing.T) {
	dsn := migrated(t)
	s, db := open(t, dsn), raw(t, dsn)
	ids, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w"}}})
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
	defer w.Close()
	at := time.Now()
	create := store.Transition{Run: 7, At: at, Workflow: ids["w"], State: 2, Owner: &id, NextCheck: at, Data: []byte("0")}
	for name, commit := range map[string]func(context.Context) error{
		"commit": func(ctx context.Context) error {
			out, err := w.Commit(ctx, []store.Transition{{Run: 7, Seq: 1, At: at, Data: []byte("1")}})
			if err == nil {
				err = out[0].Err
			}
			return err
		},
		"submit": func(ctx context.Context) error {
			sub, err := storetest.Submit(ctx, w, create, naming.Names{Name: "n", Workflow: "w", Key: "k"})
			if err == nil && sub.Exists {
				err = errors.New("reported as an earlier run")
			}
			return err
		},
	} {
		seq := int32(0)
		if name == "commit" {
			seq = 1
			must(t, db, `DELETE FROM engine.journal`)
			must(t, db, `DELETE FROM engine.run`)
			if out, err := w.Commit(t.Context(), []store.Transition{create}); err != nil || !out[0].Landed {
				t.Fatalf("create: %+v, err = %v", out, err)
			}
		} else {
			must(t, db, `DELETE FROM engine.journal`)
			must(t, db, `DELETE FROM engine.run`)
		}
		wait, release := hold(t, db, 7, seq)
		done := make(chan error, 1)
		go func() { done <- commit(t.Context()) }()
		wait(1)
		must(t, db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		release()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, rows, err := store.LoadRun(t.Context(), s, 7); err != nil || len(rows) != int(seq)+1 {
			t.Errorf("%s: %d rows, err = %v, want %d", name, len(rows), err, seq+1)
		}
	}
}

// judge sorts every kind of error that storage.md section 3 names.
func TestJudge(t *testing.T) {
	for state, want := range map[string]verdict{
		"08006": unknown, "08P01": unknown, "57P01": unknown, "57P02": unknown, "57P03": unknown,
		"23505": taken,
		"22021": refused, "22P02": refused, "54000": refused, "23514": refused, "23502": refused,
		"40P01": later, "40001": later, "57014": later, "25P03": later, "55P03": later,
		"53100": later, "53200": later, "53300": later, "25006": later, "58030": later,
		"XX000": suspected, "P0001": suspected, "42501": suspected,
		"42P01": failed, "28P01": failed,
	} {
		if got := judge(&pq.Error{Code: pqerror.Code(state)}); got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
	if got := judge(&pq.Error{Code: "53100", Severity: "PANIC"}); got != unknown {
		t.Errorf("a server that panics: %v, want unknown", got)
	}
	if got := judge(&pq.Error{Code: "23502", Table: "context"}); got != taken {
		t.Errorf("a key that is held: %v, want %v", got, taken)
	}
	for _, err := range []error{net.ErrClosed, context.DeadlineExceeded, errors.New("any")} {
		if got := judge(err); got != unknown {
			t.Errorf("%v: %v, want unknown", err, got)
		}
	}
}
