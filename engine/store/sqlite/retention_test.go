package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// retainBase is when the runs of these tests finish; retention looks from an
// hour later.
var retainBase = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// kept submits a run with a row of every kind that is kept of one, and ends it
// in a state, unless that is 0.
func kept(t testing.TB, s *Store, w store.Writer, id store.EngineID, run status.RunID, state status.RunState, steps int) {
	t.Helper()
	ctx := t.Context()
	first := store.Transition{
		Run: run, At: retainBase, Workflow: 1, State: status.RunRunning, Owner: &id, NextCheck: retainBase, Data: []byte("0"),
		Names: &naming.Names{Name: fmt.Sprint("n", run), Workflow: "w", Key: fmt.Sprint("k", run), KeyScope: naming.KeyScope{Scope: naming.ScopeActive}},
	}
	second := store.Transition{Run: run, Seq: 1, At: retainBase, State: state, NextCheck: store.Never, Data: []byte("1"), Alerts: []store.Alert{{Kind: "parked"}}}
	for n := range int32(steps) {
		second.NewNodes = append(second.NewNodes, store.NodeName{Node: 3 + n, Step: 2, Name: fmt.Sprint("c", n)})
		second.Steps = append(second.Steps, store.StepRow{Node: 3 + n, State: status.StepSucceeded, Attempt: 1})
	}
	for _, tr := range []store.Transition{first, second} {
		if out, err := w.Commit(ctx, []store.Transition{tr}); err != nil || !out[0].Landed {
			t.Fatalf("commit: %+v, err = %v", out, err)
		}
	}
	if err := s.KeepLate(ctx, store.LateReply{Run: run, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepLogs(ctx, []store.LogLine{{Run: run, Message: "m"}}); err != nil {
		t.Fatal(err)
	}
}

// wantGone checks that whatever asks for a run finds nothing, and that its names
// are free.
func wantGone(t testing.TB, s *Store, w store.Writer, id store.EngineID, run status.RunID) {
	t.Helper()
	ctx := t.Context()
	if _, _, err := store.LoadRun(ctx, s, run); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("load run %d: err = %v, want ErrNotFound", run, err)
	}
	if r, err := store.Complete(s).Find(ctx, fmt.Sprint("n", run)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("find run %d: %+v, err = %v, want ErrNotFound", run, r, err)
	}
	rows, e1 := s.Rows(ctx, run, 0, 10)
	late, e2 := s.LateReplies(ctx, run)
	logs, e3 := s.Logs(ctx, run, 0, 10)
	alerts, e4 := s.Alerts(ctx, run, 10)
	steps, e5 := s.StepRows(ctx, run)
	if err := errors.Join(e1, e2, e3, e4, e5); err != nil || len(rows)+len(late)+len(logs)+len(alerts)+len(steps) != 0 {
		t.Errorf("of run %d there are %d rows, %d late answers, %d lines, %d alerts, %d steps, err = %v", run, len(rows), len(late), len(logs), len(alerts), len(steps), err)
	}
	if _, err := s.Post(ctx, store.Message{Run: run, Kind: store.MessageVerb}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("post to run %d: err = %v, want ErrNotFound", run, err)
	}
	again := store.Transition{Run: run + 1<<30, At: retainBase.AddDate(1, 0, 0), Workflow: 1, State: status.RunRunning, Owner: &id, NextCheck: retainBase, Data: []byte("0")}
	sub, err := storetest.Submit(ctx, w, again, naming.Names{Name: fmt.Sprint("n", run), Workflow: "w", Key: fmt.Sprint("k", run), KeyScope: naming.KeyScope{Scope: naming.ScopeActive}})
	if err != nil || sub.Exists || sub.Run != again.Run {
		t.Errorf("submit under the names of run %d: %+v, err = %v, want a new run", run, sub, err)
	}
}

// left counts the rows that are left of runs up to 100, in every table.
func left(t testing.TB, path string) (n int) {
	t.Helper()
	db := raw(t, path)
	for _, table := range []string{"run", "run_name", "context", "journal", "wide", "run_step", "run_moved", "alert", "late_reply", "log", "gone"} {
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" WHERE run_id BETWEEN 2 AND 100").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		n += rows
	}
	return n
}

// What ended long ago goes whole, in pages, and frees its names; what is
// open, young or spoken to stays.
func TestRetain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path) // run 1 is open
	ctx := t.Context()
	for run := status.RunID(2); run <= 9; run++ {
		kept(t, s, w, id, run, []status.RunState{status.RunSucceeded, status.RunFailed, status.RunCompensated, status.RunCancelled}[run%4], int(run))
	}
	kept(t, s, w, id, 10, status.RunParked, 1)
	if _, err := s.Post(ctx, store.Message{Run: 9, Kind: store.MessageReply}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Retain(ctx, retainBase, 100); err != nil || got != (store.RetainStats{}) {
		t.Errorf("nothing is old: %+v, err = %v", got, err)
	}
	before := retainBase.Add(time.Hour)
	var total store.RetainStats
	for calls := 1; ; calls++ {
		got, err := s.Retain(ctx, before, 4)
		if err != nil {
			t.Fatal(err)
		}
		total.Runs, total.Rows, total.Kept = total.Runs+got.Runs, total.Rows+got.Rows, total.Kept+got.Kept
		if got.Runs+got.Kept > 4 {
			t.Errorf("%+v of 4", got)
		}
		if !got.More {
			if calls != 3 {
				t.Errorf("through after %d calls, want 3", calls)
			}
			break
		}
	}
	// Of run 2 to 8: two rows, an alert of it and one of its late answer, that
	// answer and a line each; their instances; and the wide rows of 5 to 8.
	if want := (store.RetainStats{Runs: 7, Rows: 7*6 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 4, Kept: 3}); total != want {
		t.Errorf("retain = %+v, want %+v", total, want)
	}
	for _, run := range []status.RunID{1, 9, 10} {
		if _, rows, err := store.LoadRun(ctx, s, run); err != nil || len(rows) == 0 {
			t.Errorf("run %d: %d rows, err = %v, want it there", run, len(rows), err)
		}
	}
	for run := status.RunID(2); run <= 8; run++ {
		wantGone(t, s, w, id, run)
	}
	// Of 9 and 10 everything: run, name, key, two rows, two alerts, an answer and
	// a line each, and their instances; 9 has a wide row.
	if n := left(t, path); n != 2*9+9+1+1 {
		t.Errorf("%d rows are left, want those of two runs", n)
	}
	if got, err := s.Retain(ctx, before, 100); err != nil || got.Runs != 0 || got.More {
		t.Errorf("again: %+v, err = %v, want nothing to do", got, err)
	}
}

// A run that is gone is gone for good, wherever retention is stopped: what is
// left of it goes with the next call, in another process too.
func TestRetainStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	for run := status.RunID(2); run <= 4; run++ {
		kept(t, s, w, id, run, status.RunSucceeded, 200)
	}
	s.mu.Lock()
	s.commit = func(x *tx, what string) error {
		if what != "remove rows" {
			return execCommit(x, what)
		}
		s.commit = execCommit
		if _, err := x.exec(txRollback); err != nil {
			return err
		}
		return errLost
	}
	s.mu.Unlock()
	got, err := s.Retain(t.Context(), retainBase.Add(time.Hour), 100)
	if !errors.Is(err, errLost) || got.Runs != 3 {
		t.Fatalf("retain = %+v, err = %v, want three runs gone, and it stopped", got, err)
	}
	if n := left(t, path); n < 3*200 {
		t.Fatalf("%d rows are left: the test has stopped nothing", n)
	}
	for run := status.RunID(2); run <= 4; run++ {
		wantGone(t, s, w, id, run)
	}
	if alerts, err := s.Undelivered(t.Context(), 10); err != nil || len(alerts) != 0 {
		t.Errorf("undelivered = %+v, err = %v, want none of runs that are gone", alerts, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, Options{})
	if got, err = s.Retain(t.Context(), retainBase.Add(time.Hour), 100); err != nil || got.Runs != 0 || got.Rows < 3*200 {
		t.Errorf("retain = %+v, err = %v, want what was left", got, err)
	}
	if n := left(t, path); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// What retention frees is used again: a file of which as much goes as comes
// does not grow.
func TestRetainFreesSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, id, w := populate(t, path)
	var pages []int
	for round := range status.RunID(5) {
		for n := range status.RunID(15) {
			kept(t, s, w, id, 2+round*15+n, status.RunSucceeded, 50)
		}
		var n int
		if err := raw(t, path).QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&n); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, n)
		if got, err := s.Retain(t.Context(), retainBase.Add(time.Hour), 100); err != nil || got.Runs != 15 {
			t.Fatalf("retain = %+v, err = %v, want 15 runs gone", got, err)
		}
	}
	if pages[4] > pages[1] {
		t.Errorf("the file has %v pages, round after round: it grows", pages)
	}
}

// What fell to two clocks is found: a run whose number is higher and whose
// beginning is earlier.
func TestRetainBesideYounger(t *testing.T) {
	s, id, w := populate(t, filepath.Join(t.TempDir(), "state.db"))
	young := store.Transition{
		Run: 2, At: retainBase.Add(2 * time.Hour), Workflow: 1, State: status.RunFailed, Owner: &id, NextCheck: store.Never, Data: []byte("0"),
		Names: &naming.Names{},
	}
	if out, err := w.Commit(t.Context(), []store.Transition{young}); err != nil || !out[0].Landed {
		t.Fatalf("commit: %+v, err = %v", out, err)
	}
	kept(t, s, w, id, 3, status.RunFailed, 1)
	if got, err := s.Retain(t.Context(), retainBase.Add(time.Hour), 100); err != nil || got.Runs != 1 || got.Kept != 1 || got.More {
		t.Errorf("retain = %+v, err = %v, want run 3 gone and run 1 held", got, err)
	}
	if _, _, err := store.LoadRun(t.Context(), s, 2); err != nil {
		t.Errorf("the younger run: %v", err)
	}
}
