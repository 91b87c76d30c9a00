package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// The WAL is written back beside the commits and begins anew: it does not grow
// with what is written, and nobody's reading is in the way.
func TestCheckpointsBesideCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	run := status.RunID(2)
	// write commits until a checkpoint has begun and ended.
	write := func() {
		at := time.Now()
		for begun := false; !begun; run++ {
			s.mu.Lock()
			before := s.written
			s.mu.Unlock()
			out, err := w.Commit(t.Context(), []store.Transition{{
				Run: run, At: at, Workflow: 1, State: status.RunRunning, Owner: &id, NextCheck: at, Data: make([]byte, 300_000),
			}})
			if err != nil || !out[0].Landed {
				t.Fatalf("commit: %+v, err = %v", out, err)
			}
			s.mu.Lock()
			begun = s.written < before
			s.mu.Unlock()
		}
		s.checkpoints.Wait()
	}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	write()
	first := size()
	if first < checkpointBytes || first > 2*checkpointBytes {
		t.Errorf("the WAL has %d bytes at its first checkpoint, want about %d", first, checkpointBytes)
	}
	for range 3 {
		write()
	}
	if now := size(); now > first+first/4 {
		t.Errorf("the WAL has grown from %d to %d bytes", first, now)
	}
	// All of it stands in the file itself now, but for what came last.
	info, err := os.Stat(path)
	if err != nil || info.Size() < 4*checkpointBytes*9/10 {
		t.Errorf("the file has %v bytes, err = %v, want what was written", info.Size(), err)
	}
	if _, rows, err := store.LoadRun(t.Context(), s, run-1); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, err = %v", len(rows), err)
	}
}
