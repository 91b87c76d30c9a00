package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// What ended long ago goes whole, in pages, and frees its names; what is
// open, young or spoken to stays.
func TestRetain(t *testing.T) {
	s := New(Options{})
	ctx := t.Context()
	ids, err := s.PutDefinition(ctx, store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Join(ctx, "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(ctx, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	submit := func(run status.RunID, names int, state status.RunState, at time.Time) store.Submitted {
		t.Helper()
		sub, err := storetest.Submit(ctx, w, store.Transition{
			Run: run, At: at, Workflow: ids["w"], State: state, Owner: &id, NextCheck: store.Never, Data: []byte("0"), Alerts: []store.Alert{{Kind: "parked"}},
		}, naming.Names{Name: fmt.Sprint("n", names), Workflow: "w", Key: fmt.Sprint("k", names), KeyScope: naming.KeyScope{Scope: naming.ScopeActive}})
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	for run, state := range map[status.RunID]status.RunState{1: status.RunSucceeded, 2: status.RunFailed, 3: status.RunParked, 4: status.RunSucceeded, 5: status.RunCancelled} {
		submit(run, int(run), state, at)
	}
	submit(6, 6, status.RunSucceeded, at.Add(time.Hour))
	if _, err := s.Post(ctx, store.Message{Run: 4, Kind: store.MessageReply}); err != nil {
		t.Fatal(err)
	}
	before := at.Add(time.Minute)
	for i, want := range []store.RetainStats{{Runs: 2, Rows: 4, More: true}, {Kept: 2, More: true}, {Runs: 1, Rows: 2}, {Kept: 2, More: true}, {}} {
		if got, err := s.Retain(ctx, before, 2); err != nil || got != want {
			t.Errorf("call %d: %+v, err = %v, want %+v", i, got, err, want)
		}
	}
	for _, run := range []status.RunID{3, 4, 6} {
		if _, _, err := store.LoadRun(ctx, s, run); err != nil {
			t.Errorf("run %d: %v, want it there", run, err)
		}
	}
	alerts, err := s.Undelivered(ctx, 10)
	if err != nil || len(alerts) != 3 {
		t.Errorf("undelivered = %+v, err = %v, want those of three runs", alerts, err)
	}
	if err := s.Delivered(ctx, []int64{alerts[0].ID, alerts[2].ID}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Undelivered(ctx, 10); err != nil || len(got) != 1 || got[0].ID != alerts[1].ID {
		t.Errorf("undelivered = %+v, err = %v, want alert %d", got, err, alerts[1].ID)
	}
	for _, run := range []status.RunID{1, 2, 5} {
		if _, _, err := store.LoadRun(ctx, s, run); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("load run %d: err = %v, want ErrNotFound", run, err)
		}
		if _, err := store.Complete(s).Find(ctx, fmt.Sprint("n", run)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("find run %d: err = %v, want ErrNotFound", run, err)
		}
		if sub := submit(run+10, int(run), status.RunRunning, at); sub.Exists {
			t.Errorf("submit under the names of run %d: %+v, want a new run", run, sub)
		}
	}
	if runs, err := s.Runs(ctx, store.RunFilter{}); err != nil || len(runs) != 6 || runs[0].Run != 15 || runs[5].Run != 3 {
		t.Errorf("runs = %+v, err = %v, want six, newest first", runs, err)
	}
}
