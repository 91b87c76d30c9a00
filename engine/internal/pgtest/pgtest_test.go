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
