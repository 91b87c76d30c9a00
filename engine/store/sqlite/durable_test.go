package sqlite

import (
	"path/filepath"
	"testing"
)

// I1: a commit that was answered survives the loss of power: SQLite flushes the
// file's log before each answer (synchronous = FULL, which it calls 2). The
// process that holds the file and a process that writes next to it both do so.
func TestCommitsAreFlushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	holder, _, _ := populate(t, path)
	guest := open(t, path, Options{Beside: true})
	for name, s := range map[string]*Store{"the process that holds the file": holder, "a process next to it": guest} {
		var level, asked int
		err := s.writeUnowned(t.Context(), "ask", func(x *tx) error {
			asked++
			return x.row(`PRAGMA synchronous`).Scan(&level)
		})
		if err != nil || asked == 0 || level != 2 {
			t.Errorf("%s: synchronous = %d, err = %v, want 2 (FULL)", name, level, err)
		}
	}
}
