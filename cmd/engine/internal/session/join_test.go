package session_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// A command that records runs waits for the key of an engine that has just made its state. Without
// the key the run would have no tag, and no engine would work on it.
func TestJoiningWaitsForTheKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, filepath.FromSlash(session.File))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	a := &cli.App{Lookup: func(string) (string, bool) { return "", false }, Chdir: dir}
	type opened struct {
		s   *session.Session
		err error
	}
	got := make(chan opened)
	go func() {
		s, err := session.OpenJoining(t.Context(), a, dir, dir)
		got <- opened{s, err}
	}()
	select {
	case o := <-got:
		t.Fatalf("opened before the key was there: %+v", o)
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := crypt.LoadOrCreateKeyFile(path + ".key"); err != nil {
		t.Fatal(err)
	}
	o := <-got
	if o.err != nil {
		t.Fatal(o.err)
	}
	defer o.s.Close()
	if o.s.Sealer == nil || !o.s.Locked {
		t.Errorf("session = %+v, want one with the key beside an engine", o.s)
	}
}
