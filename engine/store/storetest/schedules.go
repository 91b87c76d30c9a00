package storetest

import (
	"reflect"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// publishes reports whether the store under test keeps published workflows and schedules.
func publishes(h Harness) bool { _, ok := schedules.Of(h.Store); return ok }

// published returns the role schedules.Store of two stores with the same data: `mine` of the store
// under test, and `others` of a second store, as another process would open it.
func published(w *world) (mine, others schedules.Store) {
	mine, _ = schedules.Of(w.Store)
	others, _ = schedules.Of(w.Other)
	return mine, others
}

// publish publishes the workflow of the frame with the given schedules.
func publish(w *world, s schedules.Store, rows ...schedules.Row) {
	w.Helper()
	if err := s.Publish(w.ctx, schedules.Workflow{Name: flowName, ID: w.flow, By: "ann", Given: []byte("given")}, rows); err != nil {
		w.Fatalf("publish: %v", err)
	}
}

// wantSchedules checks the schedules that are due before the given time. If the time is zero, it
// checks all schedules.
func wantSchedules(w *world, s schedules.Store, before time.Time, want ...schedules.Row) {
	w.Helper()
	got, err := s.Schedules(w.ctx, before, 10)
	if err != nil {
		w.Fatalf("schedules: %v", err)
	}
	for i := range want {
		want[i].Workflow, want[i].ID, want[i].Given = flowName, w.flow, []byte("given")
	}
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		w.Errorf("schedules before %s:\ngot  %+v\nwant %+v", before, got, want)
	}
}

// scheduleRules are the rules for stores that keep published workflows (schedules.Store).
var scheduleRules = []rule{
	{name: "schedules/a publication replaces the former one", why: "a new version of a workflow must not start the ticks of an old one", run: func(w *world) {
		mine, others := published(w)
		publish(w, mine, schedules.Row{Name: "a", Timetable: "t1", Next: base}, schedules.Row{Name: "b", Timetable: "t1", Next: base}, schedules.Row{Name: "c", Timetable: "t1", Next: base})
		moved := schedules.Row{Workflow: flowName, Name: "a", Timetable: "t1", Next: base.Add(time.Hour), Last: base, LastRun: "r-1", Paused: true, Version: 1}
		if n, err := others.Move(w.ctx, moved); err != nil || n != 1 {
			w.Fatalf("move: %d, %v", n, err)
		}
		publish(w, others, schedules.Row{Name: "a", Timetable: "t1", Next: base.Add(9 * time.Hour)}, schedules.Row{Name: "b", Timetable: "t2", Next: base.Add(2 * time.Hour)})
		wantSchedules(w, mine, time.Time{},
			schedules.Row{Name: "a", Timetable: "t1", Next: base.Add(time.Hour), Last: base, LastRun: "r-1", Paused: true, Version: 3},
			schedules.Row{Name: "b", Timetable: "t2", Next: base.Add(2 * time.Hour), Version: 2})
		list, err := mine.Published(w.ctx)
		if err != nil || len(list) != 1 || list[0].Name != flowName || list[0].ID != w.flow || list[0].By != "ann" || string(list[0].Given) != "given" || list[0].At.IsZero() {
			w.Errorf("published = %+v, %v", list, err)
		}
	}},
	{name: "schedules/due ones come first, paused ones not at all", why: "a full page must hold the schedules that wait longest", run: func(w *world) {
		mine, others := published(w)
		publish(w, mine, schedules.Row{Name: "a", Timetable: "t", Next: base.Add(2 * time.Second)}, schedules.Row{Name: "b", Timetable: "t", Next: base.Add(time.Second)},
			schedules.Row{Name: "c", Timetable: "t", Next: base.Add(time.Second)}, schedules.Row{Name: "d", Timetable: "t", Next: store.Never})
		if n, err := mine.Move(w.ctx, schedules.Row{Workflow: flowName, Name: "c", Next: base.Add(time.Second), Paused: true, Version: 1}); err != nil || n != 1 {
			w.Fatalf("move: %d, %v", n, err)
		}
		wantSchedules(w, others, base.Add(time.Second))
		wantSchedules(w, others, base.Add(time.Minute),
			schedules.Row{Name: "b", Timetable: "t", Next: base.Add(time.Second), Version: 1}, schedules.Row{Name: "a", Timetable: "t", Next: base.Add(2 * time.Second), Version: 1})
		if page, err := others.Schedules(w.ctx, base.Add(time.Minute), 1); err != nil || len(page) != 1 || page[0].Name != "b" {
			w.Errorf("a page of one: %+v, %v", page, err)
		}
	}},
	{name: "schedules/a change lands only on the version that was read", why: "two engines that decide the same tick must not both move the schedule", run: func(w *world) {
		mine, others := published(w)
		publish(w, mine, schedules.Row{Name: "a", Timetable: "t", Next: base})
		first := schedules.Row{Workflow: flowName, Name: "a", Next: base.Add(time.Hour), Last: base, LastRun: "r-1", Version: 1}
		second := schedules.Row{Workflow: flowName, Name: "a", Next: base.Add(2 * time.Hour), Last: base, LastRun: "r-2", Version: 1}
		if n, err := others.Move(w.ctx, first); err != nil || n != 1 {
			w.Fatalf("the first change: %d, %v", n, err)
		}
		if n, err := mine.Move(w.ctx, second); err != nil || n != 0 {
			w.Errorf("the second change: %d, %v, want 0", n, err)
		}
		wantSchedules(w, mine, time.Time{}, schedules.Row{Name: "a", Timetable: "t", Next: base.Add(time.Hour), Last: base, LastRun: "r-1", Version: 2})
		if n, err := mine.Move(w.ctx, schedules.Row{Workflow: flowName, Name: "x", Next: base, Version: 1}); err != nil || n != 0 {
			w.Errorf("a schedule that does not exist: %d, %v, want 0", n, err)
		}
	}},
	{name: "schedules/one change that is too late stops no other", why: "two engines that read the same due schedules must not hold up each other", run: func(w *world) {
		mine, others := published(w)
		publish(w, mine, schedules.Row{Name: "a", Timetable: "t", Next: base}, schedules.Row{Name: "b", Timetable: "t", Next: base}, schedules.Row{Name: "c", Timetable: "t", Next: base})
		to := func(name string, version int64, last time.Time) schedules.Row {
			return schedules.Row{Workflow: flowName, Name: name, Next: base.Add(time.Hour), Last: last, LastRun: name + "-1", Version: version}
		}
		if n, err := others.Move(w.ctx, to("c", 1, base), to("b", 7, base), to("a", 1, time.Time{})); err != nil || n != 2 {
			w.Fatalf("move: %d, %v, want 2", n, err)
		}
		if n, err := mine.Move(w.ctx); err != nil || n != 0 {
			w.Errorf("move nothing: %d, %v, want 0", n, err)
		}
		wantSchedules(w, mine, time.Time{},
			schedules.Row{Name: "a", Timetable: "t", Next: base.Add(time.Hour), LastRun: "a-1", Version: 2},
			schedules.Row{Name: "b", Timetable: "t", Next: base, Version: 1},
			schedules.Row{Name: "c", Timetable: "t", Next: base.Add(time.Hour), Last: base, LastRun: "c-1", Version: 2})
	}},
	{name: "schedules/variables are replaced only if they are the ones that were read", why: "sealing them again must not undo a publication", run: func(w *world) {
		mine, others := published(w)
		publish(w, mine, schedules.Row{Name: "a", Timetable: "t", Next: base})
		for _, c := range []struct {
			old, given string
			want       bool
		}{{"other", "x", false}, {"given", "sealed", true}, {"given", "y", false}, {"sealed", "given", true}} {
			if ok, err := others.ReplaceGiven(w.ctx, flowName, []byte(c.old), []byte(c.given)); err != nil || ok != c.want {
				w.Errorf("replace %q by %q: %t, %v, want %t", c.old, c.given, ok, err, c.want)
			}
		}
		wantSchedules(w, mine, time.Time{}, schedules.Row{Name: "a", Timetable: "t", Next: base, Version: 1})
	}},
	{name: "schedules/a withdrawn workflow has none", why: "withdrawing is how a person stops all ticks of a workflow", run: func(w *world) {
		mine, others := published(w)
		publish(w, mine, schedules.Row{Name: "a", Timetable: "t", Next: base})
		for _, want := range []bool{true, false} {
			if found, err := others.Withdraw(w.ctx, flowName); err != nil || found != want {
				w.Errorf("withdraw: %t, %v, want %t", found, err, want)
			}
		}
		wantSchedules(w, mine, time.Time{})
		if list, err := mine.Published(w.ctx); err != nil || len(list) != 0 {
			w.Errorf("published = %+v, %v", list, err)
		}
	}},
}
