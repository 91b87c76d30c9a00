package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/saga-engine/engine/engine/store"
)

// Whatever the bytes of a state file, who opens it and reads it gets an answer or
// an error. The file is a good one with some of its bytes replaced.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "good.db")
	s, err := Open(f.Context(), path, Options{})
	if err != nil {
		f.Fatal(err)
	}
	id, w := join(f, s)
	submit(f, s, w, id, 1)
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, len(good), []byte{})
	f.Add(0, 0, []byte{})
	f.Add(0, 100, []byte("SQLite format 3\x00"))
	f.Add(16, len(good), []byte{0, 1})        // the size of a page
	f.Add(18, len(good), []byte{9, 9})        // the versions of the format
	f.Add(100, len(good), []byte{0xff})       // the kind of the first page
	f.Add(103, len(good), []byte{0xff, 0xff}) // how many cells it has
	f.Add(len(good)/2, len(good), bytes.Repeat([]byte{0xff}, 4096))
	f.Add(4096, len(good)-1, bytes.Repeat([]byte{0}, 64))
	f.Fuzz(func(t *testing.T, at, size int, patch []byte) {
		data := bytes.Clone(good[:min(max(size, 0), len(good))])
		if at >= 0 && at < len(data) {
			copy(data[at:], patch)
		}
		path := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), path, Options{ReadOnly: true})
		if err != nil {
			return
		}
		defer s.Close()
		_, _ = s.Runs(t.Context(), store.RunFilter{Limit: 10})
		_, _, _ = store.LoadRun(t.Context(), s, 1)
		_, _ = store.Complete(s).Find(t.Context(), "n-1")
	})
}
