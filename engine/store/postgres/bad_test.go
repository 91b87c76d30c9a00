package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// A bench is a store with a definition and an engine with one writer.
type bench struct {
	*Store
	id   store.EngineID
	w    store.Writer
	flow store.WorkflowID
}

func newBench(t *testing.T, dsn string) *bench {
	t.Helper()
	return benchOn(t, open(t, dsn))
}

func benchOn(t *testing.T, s *Store) *bench {
	t.Helper()
	ids, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Store: s, flow: ids["w"]}
	b.join(t)
	return b
}

func (b *bench) join(t *testing.T) {
	t.Helper()
	var err error
	if b.id, err = b.Join(t.Context(), "test", time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	if b.w, err = b.OpenWriter(t.Context(), b.id, 0); err != nil {
		t.Fatal(err)
	}
	w := b.w
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("close writer: %v", err)
		}
	})
}

func (b *bench) create(run status.RunID) store.Transition {
	return store.Transition{Run: run, At: at, Workflow: b.flow, State: status.RunRunning, Owner: &b.id, NextCheck: store.Never, Data: []byte("0")}
}

// commit lands one transition or returns why not.
func (b *bench) commit(ctx context.Context, t store.Transition) error {
	out, err := b.w.Commit(ctx, []store.Transition{t})
	if err == nil {
		err = out[0].Err
	}
	return err
}

// plain returns the DSN of a user who owns nothing but what engines need.
func plain(t *testing.T, dsn string) string {
	t.Helper()
	db := raw(t, dsn)
	name := "plain_" + strings.TrimPrefix(strings.TrimPrefix(dbName(t, dsn), "t_"), "")
	must(t, db, fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD 'x'`, name))
	must(t, db, fmt.Sprintf(`GRANT ALL ON SCHEMA engine TO %q`, name))
	must(t, db, fmt.Sprintf(`GRANT ALL ON ALL TABLES IN SCHEMA engine TO %q`, name))
	must(t, db, fmt.Sprintf(`GRANT ALL ON ALL SEQUENCES IN SCHEMA engine TO %q`, name))
	t.Cleanup(func() {
		if _, err := db.Exec(fmt.Sprintf(`DROP OWNED BY %q`, name)); err != nil {
			t.Error(err)
		}
		if _, err := db.Exec(fmt.Sprintf(`DROP ROLE %q`, name)); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "x")
	return u.String()
}

func dbName(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// S84: what is thin or wrong about a database is found, and a plain user can
// ask.
func TestExamine(t *testing.T) {
	dsn := migrated(t)
	levels := func(s *Store) map[string]health.Finding {
		found, err := s.Examine(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]health.Finding)
		for _, f := range found {
			if f.Level != health.OK && f.Hint == "" || f.Message == "" {
				t.Errorf("%+v: want a message, and a hint where it is not good", f)
			}
			out[f.Name] = f
		}
		return out
	}
	for name, who := range map[string]string{"superuser": dsn, "plain user": plain(t, dsn)} {
		for n, f := range levels(open(t, who)) {
			if f.Level != health.OK {
				t.Errorf("%s: %s: %+v, want it good", name, n, f)
			}
		}
	}
	must(t, raw(t, dsn), fmt.Sprintf(`ALTER DATABASE %q SET synchronous_commit = off`, dbName(t, dsn)))
	must(t, raw(t, dsn), fmt.Sprintf(`ALTER DATABASE %q SET default_transaction_read_only = on`, dbName(t, dsn)))
	got := levels(open(t, dsn))
	if got["synchronous_commit"].Level != health.Warning || got["writes"].Level != health.Error {
		t.Errorf("findings = %+v, want synchronous_commit and writes among them", got)
	}
}

// Each bad condition of a server is told by name.
func TestConditions(t *testing.T) {
	good := condition{version: "15.1", number: 150001, sync: "on", fsync: true, fullPages: true, most: 97, used: 10}
	for name, c := range map[string]struct {
		spoil func(*condition)
		want  health.Severity
	}{
		"server":             {func(c *condition) { c.number = 130012 }, health.Error},
		"writes":             {func(c *condition) { c.standby = true }, health.Error},
		"synchronous_commit": {func(c *condition) { c.sync = "local" }, health.Warning},
		"fsync":              {func(c *condition) { c.fsync = false }, health.Error},
		"clock":              {func(c *condition) { c.offset = -time.Hour }, health.Warning},
		"connections":        {func(c *condition) { c.used = 80 }, health.Warning},
		"vacuum":             {func(c *condition) { c.xmin = 1e9 }, health.Warning},
		"prepared":           {func(c *condition) { c.prepared = time.Hour }, health.Warning},
	} {
		bad := good
		c.spoil(&bad)
		for i, f := range bad.findings() {
			want := health.OK
			if f.Name == name {
				want = c.want
			}
			if f.Level != want || good.findings()[i].Level != health.OK {
				t.Errorf("%s: %+v, want level %d", name, f, want)
			}
		}
	}
}

// A database that takes no writes refuses them with words for people, loses
// nothing, and goes on when it takes them again.
func TestReadOnly(t *testing.T) {
	dsn := migrated(t)
	b := newBench(t, dsn)
	if err := b.commit(t.Context(), b.create(7)); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dsn)
	must(t, db, fmt.Sprintf(`ALTER DATABASE %q SET default_transaction_read_only = on`, dbName(t, dsn)))
	must(t, db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	next := store.Transition{Run: 7, Seq: 1, At: at, Data: []byte("1")}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	for name, try := range map[string]func() error{
		"commit": func() error { return b.commit(soon(), next) },
		"submit": func() error { _, err := storetest.Submit(soon(), b.w, b.create(8), naming.Names{}); return err },
		"tick":   func() error { _, err := b.Tick(t.Context(), b.id, time.Hour, 1); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "takes no writes") {
			t.Errorf("%s: err = %v, want it to say that the database takes no writes", name, err)
		}
	}
	must(t, db, `SET default_transaction_read_only = off`)
	must(t, db, fmt.Sprintf(`ALTER DATABASE %q RESET default_transaction_read_only`, dbName(t, dsn)))
	// The session of the writer stays read-only for as long as it lasts, so the writer needs another.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := b.commit(ctx, next); err != nil {
		t.Errorf("commit afterwards: %v", err)
	}
	if _, rows, err := store.LoadRun(t.Context(), b, 7); err != nil || len(rows) != 2 {
		t.Errorf("%d rows, err = %v, want 2", len(rows), err)
	}
}

// A server without a connection left is named, and waited for.
func TestTooManyConnections(t *testing.T) {
	dsn := migrated(t)
	who := plain(t, dsn)
	b := newBench(t, who)
	if err := b.commit(t.Context(), b.create(7)); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dsn)
	role := strings.Split(strings.TrimPrefix(who, "postgres://"), ":")[0]
	must(t, db, fmt.Sprintf(`ALTER ROLE %q CONNECTION LIMIT 0`, role))
	must(t, db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'plain%'`)
	next := store.Transition{Run: 7, Seq: 1, At: at, Data: []byte("1")}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := b.commit(ctx, next); err == nil || !strings.Contains(err.Error(), "too many connections") {
		t.Errorf("commit: err = %v, want it to say so", err)
	}
	if _, err := Open(t.Context(), who, Options{}); err == nil || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("open: err = %v, want it to say what to do", err)
	}
	must(t, db, fmt.Sprintf(`ALTER ROLE %q CONNECTION LIMIT -1`, role))
	if err := b.commit(t.Context(), next); err != nil {
		// The first one may have been sent: its own row is no conflict to care about.
		if !errors.Is(err, store.ErrStale) {
			t.Errorf("commit afterwards: %v", err)
		}
	}
	if _, rows, err := store.LoadRun(t.Context(), b, 7); err != nil || len(rows) != 2 {
		t.Errorf("%d rows, err = %v, want 2", len(rows), err)
	}
}

// What the server does not let this engine ask costs only the notice of lost
// history, and doctor says so.
func TestIdentityNotPermitted(t *testing.T) {
	dsn := migrated(t)
	who := plain(t, dsn)
	db := raw(t, dsn)
	must(t, db, `REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC`)
	var log bytes.Buffer
	s, err := Open(t.Context(), who, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := benchOn(t, s)
	if err := b.commit(t.Context(), b.create(7)); err != nil {
		t.Errorf("commit: %v", err)
	}
	if _, err := b.Tick(t.Context(), b.id, time.Hour, 1); err != nil {
		t.Errorf("tick: %v", err)
	}
	found, err := s.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Name == "failover" && f.Level != health.Warning {
			t.Errorf("%+v, want a warning", f)
		}
	}
}
