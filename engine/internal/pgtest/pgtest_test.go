package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// Two databases of one run are apart, and each is gone after its test.
func TestDSNIsFresh(t *testing.T) {
	var dsn string
	t.Run("first", func(t *testing.T) {
		dsn = DSN(t)
		if other := DSN(t); other == dsn {
			t.Errorf("two databases share the DSN %s", dsn)
		}
		db := open(t, dsn)
		var fsync string
		if err := db.QueryRowContext(t.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
			t.Errorf("fsync = %q, err = %v, want on: tests of durability mean nothing without", fsync, err)
		}
	})
	if err := open(t, dsn).PingContext(t.Context()); err == nil {
		t.Error("the database is still there after its test")
	}
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// A cluster leaves neither a process nor a file behind.
func TestStopLeavesNothing(t *testing.T) {
	c, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, c.DSN).PingContext(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory: err = %v, want it gone", err)
	}
	if c.cmd.ProcessState == nil {
		t.Error("the server was not reaped")
	}
}

// A start that is given up stops what it had begun.
func TestStartCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Start(ctx); err == nil {
		t.Errorf("started under an ended context; stop: %v", c.Stop())
	}
}

// A standby follows, is promoted, and has what a synchronous primary confirmed;
// a server that crashed starts again on its port, and a frozen one goes on.
func TestFailover(t *testing.T) {
	for _, sync := range []bool{true, false} {
		c, err := Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stop(t, c)
		s, err := c.Standby(t.Context(), sync)
		if err != nil {
			t.Fatal(err)
		}
		defer stop(t, s)
		primary := open(t, c.DSN)
		must(t, primary, "CREATE TABLE x (n int)")
		must(t, primary, "INSERT INTO x VALUES (1)")
		if !sync {
			if err := s.await(t.Context(), "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'x') AND pg_last_wal_replay_lsn() = pg_last_wal_receive_lsn()"); err != nil {
				t.Fatal(err)
			}
			if err := s.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			must(t, primary, "INSERT INTO x VALUES (2)")
		}
		if err := errors.Join(c.Freeze(), c.Thaw(), c.StopImmediate(), s.Promote(t.Context()), c.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		dsn, err := FailoverDSN("postgres", s, c)
		if err != nil {
			t.Fatal(err)
		}
		var n, line int
		if err := open(t, dsn).QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM x), ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int").Scan(&n, &line); err != nil || n != 1 || line != 2 {
			t.Errorf("sync %v: the promoted server has %d rows on timeline %d, err = %v, want 1 on 2", sync, n, line, err)
		}
		want := 1
		if !sync {
			want = 2
		}
		if err := primary.QueryRowContext(t.Context(), "SELECT count(*) FROM x").Scan(&n); err != nil || n != want {
			t.Errorf("sync %v: the former primary has %d rows, err = %v, want %d", sync, n, err, want)
		}
	}
}

func stop(t *testing.T, c *Cluster) {
	if err := c.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func must(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}
