package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// However often the answer to a commit is lost, what became of it is asked
// until it is known: an error would leave it open (I1, I3).
func TestAskedUntilKnown(t *testing.T) {
	for name, landed := range map[string]bool{"it has landed": true, "it has not": false} {
		t.Run(name, func(t *testing.T) {
			s, id, w := populate(t, filepath.Join(t.TempDir(), "state.db"))
			lost := 0
			hook := func(x *tx, what string) error {
				if what != "commit" || lost == 6 {
					return execCommit(x, what)
				}
				end := txRollback
				if lost++; landed {
					end = txCommit
				}
				if _, err := x.exec(end); err != nil {
					return err
				}
				return errLost
			}
			s.mu.Lock()
			s.commit = hook
			s.mu.Unlock()
			at := time.Now()
			out, err := w.Commit(t.Context(), []store.Transition{
				{Run: 1, Seq: 1, At: at, Data: []byte("1")},
				{Run: 2, At: at, Workflow: 1, State: status.RunRunning, Owner: &id, NextCheck: at, Data: []byte("0"), Names: &naming.Names{Name: "n", Workflow: "w", Key: "k"}},
			})
			if err != nil || !out[0].Landed || !out[1].Landed || out[1].Submitted != (store.Submitted{Run: 2, Name: "n"}) {
				t.Fatalf("commit: %+v, err = %v, want both landed", out, err)
			}
			if lost != 6 {
				t.Errorf("%d answers were lost, want 6", lost)
			}
			for run, want := range map[status.RunID]int{1: 2, 2: 1} {
				if _, rows, err := store.LoadRun(t.Context(), s, run); err != nil || len(rows) != want {
					t.Errorf("run %d: %d rows, err = %v, want %d", run, len(rows), err, want)
				}
			}
			// Who is going away does not wait for it: from here on all answers are lost.
			lost = -1 << 30
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if out, err := w.Commit(ctx, []store.Transition{{Run: 1, Seq: 2, At: at, Data: []byte("2")}}); err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("commit: %+v, err = %v, want an error once the context has ended", out, err)
			}
			s.mu.Lock()
			s.commit = execCommit
			s.mu.Unlock()
		})
	}
}

// An error before the end of the transaction was asked for is no doubt: nothing
// landed, and the caller is told at once.
func TestNoDoubtBeforeTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, _, w := populate(t, path)
	must(t, raw(t, path), "ALTER TABLE journal RENAME TO elsewhere")
	if out, err := w.Commit(t.Context(), []store.Transition{{Run: 1, Seq: 1, At: time.Now(), Data: []byte("1")}}); err == nil {
		t.Errorf("commit without a table: %+v, want an error", out)
	}
	must(t, raw(t, path), "ALTER TABLE elsewhere RENAME TO journal")
	if _, rows, err := store.LoadRun(t.Context(), s, 1); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, err = %v, want 1", len(rows), err)
	}
}
