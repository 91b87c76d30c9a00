package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// takesEvents reports whether the store under test keeps events.
func takesEvents(h Harness) bool { _, ok := events.Of(h.Store); return ok }

// inboxes returns the role events.Store of two stores with the same data: `mine` of the store under
// test, and `others` of a second store, as another process would open it.
func inboxes(w *world) (mine, others events.Store) {
	mine, _ = events.Of(w.Store)
	others, _ = events.Of(w.Other)
	return mine, others
}

func send(w *world, s events.Store, ids ...string) {
	w.Helper()
	for _, id := range ids {
		if sent, err := s.SendEvent(w.ctx, events.Event{ID: id, Type: "order.placed", Data: []byte(`{"n": 1}`), By: "ann"}); err != nil || !sent {
			w.Fatalf("send %s: %t, %v", id, sent, err)
		}
	}
}

// wantClaimed claims events and checks their ids. It returns the events.
func wantClaimed(w *world, s events.Store, limit int, lease time.Duration, want string) []events.Event {
	w.Helper()
	list, err := s.ClaimEvents(w.ctx, limit, lease)
	if got := idsOf(list); err != nil || got != want {
		w.Fatalf("claimed %q, %v, want %q", got, err, want)
	}
	return list
}

// idsOf returns the ids of events, in their order.
func idsOf(list []events.Event) string {
	var ids []string
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return strings.Join(ids, " ")
}

// eventRules are the rules for stores that keep events (events.Store).
var eventRules = []rule{
	{name: "events/an event is kept once", why: "a sender that does not know whether its event arrived sends it again", run: func(w *world) {
		mine, others := inboxes(w)
		send(w, mine, "e-1")
		if sent, err := others.SendEvent(w.ctx, events.Event{ID: "e-1", Type: "other", Data: []byte("2")}); err != nil || sent {
			w.Errorf("the same id again: %t, %v, want false", sent, err)
		}
		list := wantClaimed(w, others, 10, time.Hour, "e-1")
		got := list[0]
		if got.At.IsZero() || got.Seq == 0 {
			w.Errorf("event = %+v, want a time and a number", got)
		}
		got.At, got.Seq = time.Time{}, 0
		if want := (events.Event{ID: "e-1", Type: "order.placed", Data: []byte(`{"n": 1}`), By: "ann"}); !reflect.DeepEqual(got, want) {
			w.Errorf("event = %+v, want %+v", got, want)
		}
	}},
	{name: "events/bad ones are refused", why: "what a store accepts must fit every store, and a name of a run", run: func(w *world) {
		mine, _ := inboxes(w)
		for _, e := range []events.Event{
			{ID: "e", Type: ""}, {ID: "e", Type: "order placed"}, {ID: "e", Type: strings.Repeat("t", 201)}, {ID: "", Type: "t"},
			{ID: "a\nb", Type: "t"}, {ID: strings.Repeat("é", 101), Type: "t"}, {ID: "e", Type: "t", Data: make([]byte, events.MaxDataBytes+1)},
		} {
			if sent, err := mine.SendEvent(w.ctx, e); err == nil || sent {
				w.Errorf("event %.20q of type %.20q with %d bytes is accepted", e.ID, e.Type, len(e.Data))
			}
		}
		wantClaimed(w, mine, 10, time.Hour, "")
	}},
	{name: "events/a claimed batch belongs to one engine until the lease is over", why: "two engines that start the same runs do the work twice, and the events of a dead engine must come back", run: func(w *world) {
		mine, others := inboxes(w)
		send(w, mine, "a", "b", "c")
		wantClaimed(w, mine, 2, time.Hour, "a b")
		wantClaimed(w, others, 2, -time.Hour, "c")
		wantClaimed(w, mine, 2, time.Hour, "c")
		wantClaimed(w, others, 2, time.Hour, "")
	}},
	{name: "events/engines that claim at the same time share no event", why: "a batch is exclusive", run: func(w *world) {
		mine, others := inboxes(w)
		var ids []string
		for i := range 60 {
			ids = append(ids, fmt.Sprintf("e-%02d", i))
		}
		send(w, mine, ids...)
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			got []string
		)
		for n := range 4 {
			s := mine
			if n%2 == 1 {
				s = others
			}
			wg.Go(func() {
				for range 20 {
					list, err := s.ClaimEvents(w.ctx, 7, time.Hour)
					mu.Lock()
					if err != nil {
						w.Errorf("claim: %v", err)
					}
					for _, e := range list {
						got = append(got, e.ID)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			w.Errorf("claimed %v, want each of %v once", got, ids)
		}
	}},
	{name: "events/a quarantined one waits no more until it is retried", why: "a bad event must not stop the others, and must not be lost (S101)", run: func(w *world) {
		mine, others := inboxes(w)
		send(w, mine, "a", "b", "c")
		list := wantClaimed(w, mine, 10, -time.Hour, "a b c")
		if err := mine.KeepEvent(w.ctx, list[0].Seq, []string{"order", "audit"}, "no such field"); err != nil {
			w.Fatal(err)
		}
		if err := mine.KeepEvent(w.ctx, list[1].Seq, []string{"order"}, ""); err != nil {
			w.Fatal(err)
		}
		bad, err := others.ListEvents(w.ctx, true, 10)
		if err != nil || len(bad) != 1 || bad[0].ID != "a" || bad[0].Quarantined != "no such field" || !slices.Equal(bad[0].Done, []string{"order", "audit"}) {
			w.Errorf("quarantined = %+v, %v", bad, err)
		}
		if list := wantClaimed(w, others, 10, time.Hour, "b c"); !slices.Equal(list[0].Done, []string{"order"}) || list[1].Done != nil {
			w.Errorf("done = %v and %v", list[0].Done, list[1].Done)
		}
		for id, want := range map[string]bool{"a": true, "b": true, "x": false} {
			if found, err := mine.RetryEvent(w.ctx, id); err != nil || found != want {
				w.Errorf("retry %s: %t, %v, want %t", id, found, err, want)
			}
		}
		if list := wantClaimed(w, others, 10, time.Hour, "a b"); list[0].Quarantined != "" || !slices.Equal(list[0].Done, []string{"order", "audit"}) {
			w.Errorf("after retry: %+v", list[0])
		}
		if all, err := mine.ListEvents(w.ctx, false, 2); err != nil || idsOf(all) != "a b" {
			w.Errorf("the first two = %s, %v", idsOf(all), err)
		}
	}},
	{name: "events/a removed one is gone, and its id is free", why: "an event is removed when its runs are in the store", run: func(w *world) {
		mine, others := inboxes(w)
		send(w, mine, "a", "b")
		list := wantClaimed(w, mine, 10, time.Hour, "a b")
		if err := others.RemoveEvents(w.ctx, list[0].Seq, 1<<40); err != nil {
			w.Fatal(err)
		}
		if all, err := mine.ListEvents(w.ctx, false, 10); err != nil || idsOf(all) != "b" {
			w.Errorf("events = %s, %v, want b", idsOf(all), err)
		}
		send(w, others, "a")
		if err := mine.RemoveEvents(w.ctx, list[0].Seq); err != nil {
			w.Fatal(err)
		}
		wantClaimed(w, mine, 10, time.Hour, "a")
	}},
	{name: "events/a publication says which types start runs", why: "an engine must not read every definition for each event", need: publishes, run: func(w *world) {
		mine, others := published(w)
		for _, on := range [][]string{{"order.placed", "order.paid"}, nil} {
			if err := mine.Publish(w.ctx, schedules.Workflow{Name: flowName, ID: w.flow, By: "ann", Given: []byte("given"), Events: on}, nil); err != nil {
				w.Fatal(err)
			}
			list, err := others.Published(w.ctx)
			if err != nil || len(list) != 1 || !slices.Equal(list[0].Events, on) {
				w.Errorf("published = %+v, %v, want events %v", list, err, on)
			}
		}
	}},
}

// eventListRules are the rules for the lists of events.
var eventListRules = []rule{
	{name: "events/the progress of a list needs the version that was read", why: "an engine that has lost its claim must not put a list back", run: func(w *world) {
		mine, others := inboxes(w)
		send(w, mine, "a")
		e := wantClaimed(w, mine, 10, time.Hour, "a")[0]
		first := []events.List{{Workflow: "order", After: "k-5", Started: 4, Failed: 1}}
		bad := []events.FailedKey{{Key: "k-3", Error: "no such order"}}
		if ok, err := mine.AdvanceEvent(w.ctx, e, events.Page{Lists: first, Workflow: "order", Failed: bad}); err != nil || !ok {
			w.Fatalf("advance: %t, %v", ok, err)
		}
		late := events.Page{Lists: nil, Workflow: "order", Failed: []events.FailedKey{{Key: "k-4", Error: "late"}}}
		if ok, err := others.AdvanceEvent(w.ctx, e, late); err != nil || ok {
			w.Errorf("advance with an old version: %t, %v, want false", ok, err)
		}
		wantClaimed(w, others, 10, time.Hour, "")
		if err := others.ReleaseEvents(w.ctx, e.Seq); err != nil {
			w.Fatal(err)
		}
		got := wantClaimed(w, others, 10, time.Hour, "a")[0]
		if !slices.Equal(got.Lists, first) || got.Version != e.Version+1 {
			w.Errorf("lists = %+v, version %d", got.Lists, got.Version)
		}
		wantKeys(w, mine, events.KeyFilter{Seq: e.Seq, Limit: 10}, "order k-3 no such order false")
	}},
	{name: "events/failed keys wait again after a retry", why: "a retry must try only what has failed, and a key that fails again must not be tried for ever", run: func(w *world) {
		mine, others := inboxes(w)
		send(w, mine, "a", "b")
		list := wantClaimed(w, mine, 10, time.Hour, "a b")
		e := list[0]
		bad := []events.FailedKey{{Key: "z", Error: "1"}, {Key: "a", Error: "2"}, {Key: "B", Error: "3"}}
		for _, flow := range []string{"order", "audit"} {
			if ok, err := mine.AdvanceEvent(w.ctx, e, events.Page{Lists: []events.List{{Workflow: flow}}, Workflow: flow, Failed: bad}); err != nil || !ok {
				w.Fatalf("advance: %t, %v", ok, err)
			}
			e.Version++
		}
		all := events.KeyFilter{Seq: e.Seq, Workflow: "order", Limit: 10}
		wantKeys(w, others, all, "order B 3 false, order a 2 false, order z 1 false")
		wantKeys(w, others, events.KeyFilter{Seq: e.Seq, Limit: 2}, "audit B 3 false, audit a 2 false")
		waiting := all
		waiting.Waiting = true
		wantKeys(w, others, waiting, "")
		if err := mine.KeepEvent(w.ctx, e.Seq, nil, "3 keys failed"); err != nil {
			w.Fatal(err)
		}
		if found, err := others.RetryEvent(w.ctx, "a"); err != nil || !found {
			w.Fatalf("retry: %t, %v", found, err)
		}
		wantKeys(w, mine, waiting, "order B 3 true, order a 2 true, order z 1 true")
		p := events.Page{Lists: []events.List{{Workflow: "order"}}, Workflow: "order", Started: []string{"a"}, Failed: []events.FailedKey{{Key: "z", Error: "again"}}}
		if ok, err := mine.AdvanceEvent(w.ctx, e, p); err != nil || !ok {
			w.Fatalf("advance: %t, %v", ok, err)
		}
		wantKeys(w, mine, all, "order B 3 true, order z again false")
		wantKeys(w, mine, events.KeyFilter{Seq: list[1].Seq, Limit: 10}, "")
		if err := mine.RemoveEvents(w.ctx, e.Seq); err != nil {
			w.Fatal(err)
		}
		wantKeys(w, others, events.KeyFilter{Seq: e.Seq, Limit: 10}, "")
	}},
}

// wantKeys checks the failed keys that a filter selects.
func wantKeys(w *world, s events.Store, f events.KeyFilter, want string) {
	w.Helper()
	list, err := s.FailedKeys(w.ctx, f)
	var got []string
	for _, k := range list {
		got = append(got, fmt.Sprint(k.Workflow, " ", k.Key, " ", k.Error, " ", k.Waits))
	}
	if text := strings.Join(got, ", "); err != nil || text != want {
		w.Errorf("failed keys = %s, %v, want %s", text, err, want)
	}
}
