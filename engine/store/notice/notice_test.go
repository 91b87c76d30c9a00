package notice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

// A notification that retention has removed hides none of the others, and a notification of a block
// that the run's present definition does not have is found, too.
func TestFindLooksPastRemovedNotifications(t *testing.T) {
	s := store.Complete(memory.New(memory.Options{}))
	flows, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w"}, {Name: "w.notify"}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Join(t.Context(), "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	next := status.RunID(100)
	submit := func(flow, name string, announce ...string) status.RunID {
		next++
		out, err := w.Commit(t.Context(), []store.Transition{{
			Run: next, At: time.Now(), Workflow: flows[flow], State: status.RunRunning, Owner: &id, NextCheck: store.Never,
			Data: []byte("x"), Names: &naming.Names{Name: name, Workflow: flow}, Announce: announce,
		}})
		if err != nil || !out[0].Landed {
			t.Fatalf("%s: %+v, %v", name, out, err)
		}
		return next
	}
	run := submit("w", "order", "succeeded")
	n := notice.Notice{Run: run, State: "succeeded"}
	for _, k := range []int{1, 3, 4} { // the notifications 0 and 2 were removed
		submit("w.notify", n.Name("order", k))
	}
	row, err := s.Find(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	for blocks, want := range map[int]string{-1: "[]", 0: "[]", 2: "[1]", 3: "[1 3 4]", 5: "[1 3 4]"} {
		count := func(string) int { return blocks }
		if blocks < 0 {
			count = nil
		}
		sent, err := notice.Find(t.Context(), s, row, count)
		if err != nil || len(sent) != 1 {
			t.Fatalf("%+v, %v", sent, err)
		}
		var got []int
		for _, r := range sent[0].Notifications {
			for k := range 9 {
				if r.Name == n.Name("order", k) {
					got = append(got, k)
				}
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("with %d blocks the notifications are %v, want %s", blocks, got, want)
		}
	}
}

// Only the names of notifications are those of notifications: a group may have a name that begins with
// the word notify.
func TestNamesOfNotifications(t *testing.T) {
	for name, want := range map[string]bool{
		"order.notify": true, "order.notify.2": true, "shop.order.notify": true, "shop.order.notify.12": true,
		"order": false, "notify": false, "order.notify_all": false, "order.notify2": false, "order.notified.x": false, "order.pack.2x": false,
	} {
		if got := notice.Announces(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
