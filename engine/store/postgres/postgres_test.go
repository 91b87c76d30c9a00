package postgres

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var template = pgtest.Template{Fill: func(ctx context.Context, dsn string) error {
	_, _, err := Migrate(ctx, dsn)
	return err
}}

// migrated returns the DSN of a fresh, migrated database.
func migrated(t testing.TB) string {
	t.Helper()
	return template.DSN(t)
}

func open(t testing.TB, dsn string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// raw is a connection beside any store.
func raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// A suite holds what all cases of a suite share: each new session costs some time.
type suite struct {
	db    *sql.DB // a superuser's session
	role  string  // the DSN with the role of the stores' sessions
	other *Store
	// limited is true if the role may not change rows of the journal.
	limited bool
}

func newSuite(t testing.TB, dsn string) *suite {
	return &suite{db: raw(t, dsn), role: dsn, other: open(t, dsn)}
}

// harness empties the database for each case.
func (u *suite) harness(t *testing.T) storetest.Harness {
	p, through := newProxy(t, u.role)
	db := u.db
	var empty strings.Builder // one request is quicker than one for each table
	for _, table := range []string{"submission", "events", "published", "run_moved", "member", "fence", "workflow_step", "workflow", "definition", "setting", "run", "journal", "run_name", "context", "goal_reset", "run_step", "alert",
		"inbox", "pass", "notice", "reply", "late_reply", "log", "hand", "suspect", "place", "heir", "snapshot", "quota", "quota_slot", "quota_call"} {
		empty.WriteString("DELETE FROM engine." + table + ";")
	}
	must(t, db, empty.String())
	return storetest.Harness{
		Store: open(t, through),
		Other: u.other, Limited: u.limited,
		Expire: func(t *testing.T, id store.EngineID) {
			t.Helper()
			must(t, db, `UPDATE engine.member SET lease_until = clock_timestamp() - interval '1 second' WHERE engine = $1`, int64(id))
		},
		Lose: func(_ *testing.T, landed bool) { p.loseNext(landed, func() {}) },
		LoseFenced: func(t *testing.T, id store.EngineID, landed bool) {
			p.loseNext(landed, func() {
				if _, err := db.Exec(`UPDATE engine.member SET dead = true WHERE engine = $1`, int64(id)); err != nil {
					t.Error(err)
				}
				if _, err := db.Exec(`DELETE FROM engine.fence WHERE engine = $1`, int64(id)); err != nil {
					t.Error(err)
				}
			})
		},
		Hold: func(t *testing.T, run status.RunID, seq int32) (func(int), func()) { return hold(t, db, run, seq) },
		Cut:  func(*testing.T) { p.cut(func(k *link) bool { return k.writer }) },
		Read: func(t *testing.T) func() {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []string{"runs", "steps", "run", "journal", "run_name", "context", "member", "fence", "alert", "inbox", "pass", "late_reply", "log"} {
				if _, err := tx.Exec("SELECT * FROM engine." + q); err != nil {
					t.Fatal(err)
				}
			}
			return func() {
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			}
		},
	}
}

func must(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// hold writes the row first, in a transaction that is rolled back in the end:
// whoever appends it waits for that.
func hold(t *testing.T, db *sql.DB, run status.RunID, seq int32) (wait func(int), release func()) {
	t.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, data) VALUES ($1, $2, now(), 1, 2, 0, 'x')`, int64(run), seq); err != nil {
		t.Fatal(err)
	}
	released := false
	release = func() {
		if !released {
			released = true
			if err := tx.Rollback(); err != nil {
				t.Errorf("release: %v", err)
			}
		}
	}
	t.Cleanup(release)
	wait = func(n int) {
		t.Helper()
		deadline := time.Now().Add(5 * time.Second) // below the writers' statement_timeout
		for {
			var waiting int
			if err := db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
			if waiting >= n {
				return
			}
			if time.Now().After(deadline) {
				release()
				t.Fatalf("%d sessions wait for a lock, want %d", waiting, n)
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-t.Context().Done():
				return
			}
		}
	}
	return wait, release
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, newSuite(t, migrated(t)).harness)
}

func TestStress(t *testing.T) {
	storetest.Stress(t, newSuite(t, migrated(t)).harness(t), 3*time.Second)
}

// The pools have as many connections as the comment of Options.MaxConns says.
func TestPoolSizes(t *testing.T) {
	dsn := migrated(t)
	for conns, want := range map[int][3]int{0: {4, 4, 4}, 1: {1, 1, 1}, 5: {3, 2, 3}} {
		s, err := Open(t.Context(), dsn, Options{MaxConns: conns})
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]int{s.db.Stats().MaxOpenConnections, s.reads.Stats().MaxOpenConnections, s.tables.Stats().MaxOpenConnections}; got != want {
			t.Errorf("MaxConns = %d: the pools for work, people and selections have %v connections, want %v", conns, got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
