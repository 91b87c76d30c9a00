package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storetest"
)

func open(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
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

// raw is a connection beside any store, as the sqlite3 program has it.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "rw", "busy_timeout(10000)"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func must(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

var errLost = errors.New("the answer was lost")

// lose replaces the next batch's commit by one whose answer is lost; before the writer sends it again, the engine fence is dead.
func lose(s *Store, landed bool, fence store.EngineID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit = func(x *tx, what string) error {
		if what != "commit" {
			return execCommit(x, what)
		}
		s.commit = execCommit
		if landed {
			if err := execCommit(x, what); err != nil {
				return err
			}
		} else if _, err := x.exec(txRollback); err != nil {
			return err
		}
		if _, err := x.exec(fenceDrop, int64(fence)); err != nil {
			return err
		}
		return errLost
	}
}

func harness(t *testing.T) storetest.Harness {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{})
	db := raw(t, path)
	return storetest.Harness{
		Store: s,
		Expire: func(t *testing.T, id store.EngineID) {
			t.Helper()
			err := s.write(t.Context(), "expire", func(tx *tx) error {
				_, err := tx.exec(`UPDATE member SET lease_until = 1 WHERE engine = ?1`, int64(id))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		},
		Lose:       func(_ *testing.T, landed bool) { lose(s, landed, 0) },
		LoseFenced: func(_ *testing.T, id store.EngineID, landed bool) { lose(s, landed, id) },
		Read: func(t *testing.T) func() {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"runs", "steps", "run", "journal", "run_name", "context", "member", "fence", "alert", "inbox", "pass", "late_reply", "log"} {
				if _, err := tx.Exec("SELECT * FROM " + table); err != nil {
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

func TestStore(t *testing.T) { storetest.Run(t, harness) }

func TestStress(t *testing.T) { storetest.Stress(t, harness(t), time.Second) }
