package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// populate opens a new file and puts one run into it.
func populate(t *testing.T, path string) (*Store, store.EngineID, store.Writer) {
	t.Helper()
	s := open(t, path, Options{})
	id, w := join(t, s)
	submit(t, s, w, id, 1)
	return s, id, w
}

func join(t testing.TB, s *Store) (store.EngineID, store.Writer) {
	t.Helper()
	id, err := s.Join(t.Context(), "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return id, w
}

func submit(t testing.TB, s *Store, w store.Writer, id store.EngineID, run status.RunID) {
	t.Helper()
	ids, err := s.PutDefinition(t.Context(), store.Definition{
		Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a", "b", "c"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	_, err = storetest.Submit(t.Context(), w, store.Transition{
		Run: run, At: at, Workflow: ids["w"], State: status.RunRunning, Owner: &id, NextCheck: at, Data: []byte("0"),
		Steps: []store.StepRow{{Node: 0, State: status.StepRunning, Attempt: 1, CompleteBy: at.Add(time.Minute)}},
	}, naming.Names{Workflow: "w", Name: fmt.Sprint("n-", run)})
	if err != nil {
		t.Fatal(err)
	}
}

// What Open makes belongs to its user alone.
func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "state.db")
	populate(t, path)
	for name, want := range map[string]fs.FileMode{path: 0o600, path + "-wal": 0o600, path + ".lock": 0o600, dir: 0o700 | fs.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: mode = %v, err = %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// Names that mean something in a URI are only names.
func TestOddPaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a b.db", "50%.db", "a?mode=memory.db", "a#b.db", "ü'\".db", "./x/y.db"} {
		s, err := Open(t.Context(), name, Options{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("%q: close: %v", name, err)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%q: the file is not there: %v", name, err)
		}
	}
}

// One process at a time writes; who comes second learns who was first. Readers
// work beside it.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	var locked *LockedError
	_, err := Open(t.Context(), path, Options{})
	if !errors.As(err, &locked) || locked.Path != path || !strings.Contains(locked.Holder, "process ") || !strings.Contains(locked.Holder, "since 20") {
		t.Errorf("second open: err = %v, want a LockedError that names the holder", err)
	}
	r := open(t, path, Options{ReadOnly: true})
	if run, err := store.Complete(r).Find(t.Context(), "1"); err != nil || !run.OwnerAlive {
		t.Errorf("read beside the writer: %+v, err = %v", run, err)
	}
	submit(t, s, w, id, 2)
	if rs, err := r.Runs(t.Context(), store.RunFilter{}); err != nil || len(rs) != 2 {
		t.Errorf("read what was written meanwhile: %d runs, err = %v", len(rs), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{})
}

// The lock proves every earlier member dead: a crashed engine's runs are
// orphans at once, whatever its lease says.
func TestOpenEndsEarlierLeases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, _ := populate(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, Options{})
	if live, err := store.Complete(s).Live(t.Context()); len(live) != 0 || err != nil {
		t.Errorf("live engines = %v, err = %v, want 0", live, err)
	}
	next, _ := join(t, s)
	tick, err := s.Tick(t.Context(), next, time.Hour, 10)
	if err != nil || len(tick.Dead) != 1 || tick.Dead[0] != id {
		t.Errorf("tick = %+v, err = %v, want engine %d dead", tick, err, id)
	}
	if dead, err := s.Fence(t.Context(), id); !dead || err != nil {
		t.Errorf("fence: dead = %v, err = %v", dead, err)
	}
	if ids, err := storetest.IDs(s.Runs(t.Context(), storetest.Orphans(0, 10))); err != nil || len(ids) != 1 {
		t.Errorf("orphans = %v, err = %v, want the run", ids, err)
	}
}

// A file that is open for reading is not written, and says so.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _, _ := populate(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, Options{ReadOnly: true})
	if h, rows, err := store.LoadRun(t.Context(), r, 1); err != nil || h.State != status.RunRunning || len(rows) != 1 {
		t.Errorf("load = %+v, %d rows, err = %v", h, len(rows), err)
	}
	if live, err := store.Complete(r).Live(t.Context()); len(live) != 1 || err != nil {
		t.Errorf("live engines = %v, err = %v: reading must not end leases", live, err)
	}
	if _, err := r.Join(t.Context(), "x", time.Hour, 1); !errors.Is(err, errReadOnly) {
		t.Errorf("join: err = %v, want %v", err, errReadOnly)
	}
	if _, err := r.PutDefinition(t.Context(), store.Definition{Digest: "e"}); !errors.Is(err, errReadOnly) {
		t.Errorf("put definition: err = %v, want %v", err, errReadOnly)
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none.db"), Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: err = %v, want not exist", err)
	}
}

// What is not a state file is refused with a sentence that helps, and left as
// it is.
func TestBadFiles(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	s, id, w := populate(t, good)
	for run := status.RunID(2); run < 300; run++ {
		submit(t, s, w, id, run)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	for i := 4096; i < len(damaged); i++ {
		damaged[i] = 0xA5
	}
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := filepath.Join(dir, "foreign.db")
	must(t, rawNew(t, foreign), "CREATE TABLE notes (text TEXT)")
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"text":               {file("text", bytes.Repeat([]byte("not a database\n"), 500)), "not a state file"},
		"damaged":            {file("damaged", damaged), "damaged"},
		"cut short":          {file("short", whole[:5000]), "damaged"},
		"of another program": {foreign, "another program"},
		"a directory":        {sub, "is a directory"},
		"below a file":       {filepath.Join(good, "state.db"), "not a directory"},
		"a device":           {os.DevNull, "not a regular file"},
	} {
		before, _ := os.ReadFile(c.path) // a directory has nothing to compare
		for _, ro := range []bool{false, true} {
			s, err := Open(t.Context(), c.path, Options{ReadOnly: ro})
			if err == nil {
				// Damage past the first pages shows when it is read.
				_, err = s.Runs(t.Context(), store.RunFilter{})
				err = errors.Join(err, s.Close())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("%s (read only %v): err = %v, want it to say %q", name, ro, err, c.want)
			}
		}
		if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// A file of a newer engine is left alone.
func TestNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _, _ := populate(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, raw(t, path), `INSERT INTO schema_version (version_id, is_applied) VALUES (999, 1)`)
	for _, ro := range []bool{false, true} {
		var schema *store.SchemaError
		_, err := Open(t.Context(), path, Options{ReadOnly: ro})
		if !errors.As(err, &schema) || schema.Have != 999 || schema.Want != schemaVersion || !strings.Contains(err.Error(), "newer") {
			t.Errorf("read only %v: err = %v, want a SchemaError", ro, err)
		}
	}
}

// The constant and the migrations agree.
func TestSchemaVersionIsTheLastMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, err = %v", len(files), err)
	}
	if last := files[len(files)-1].Name(); !strings.HasPrefix(last, fmt.Sprintf("%05d_", schemaVersion)) {
		t.Errorf("the last migration is %s, want number %d", last, schemaVersion)
	}
}

// T6: a full disk is said, costs nothing that was accepted, and passes.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	limit := func(n string) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, err := s.conn.ExecContext(t.Context(), "PRAGMA max_page_count = "+n); err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // SQLite takes it as the present size
	at := time.Now()
	big := []store.Transition{{Run: 1, Seq: 1, At: at, Data: make([]byte, 1<<20)}}
	_, err := w.Commit(t.Context(), big)
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("commit: err = %v, want a full disk", err)
	}
	if _, rows, err := store.LoadRun(t.Context(), s, 1); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, err = %v, want what was accepted", len(rows), err)
	}
	limit("1000000")
	if out, err := w.Commit(t.Context(), big); err != nil || !out[0].Landed {
		t.Errorf("commit with room: %+v, err = %v", out, err)
	}
	submit(t, s, w, id, 2)
}

func TestClosed(t *testing.T) {
	s, _, w := populate(t, filepath.Join(t.TempDir(), "state.db"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), []store.Transition{{Run: 1, Seq: 1, At: time.Now(), Data: []byte("x")}}); err == nil {
		t.Error("committed to a closed store")
	}
	if _, err := s.Runs(t.Context(), store.RunFilter{}); err == nil {
		t.Error("listed a closed store")
	}
}
