package storetest

import (
	"reflect"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

// keepsNotices reports whether the store under test keeps notices.
func keepsNotices(h Harness) bool { _, ok := notice.Of(h.Store); return ok }

// keepers returns the role notice.Keeper of two stores with the same data: `mine` of the store
// under test, and `others` of a second store, as another process would open it.
func keepers(w *world) (mine, others notice.Keeper) {
	mine, _ = notice.Of(w.Store)
	others, _ = notice.Of(w.Other)
	return mine, others
}

// wantOpen checks which notices are not announced yet.
func wantOpen(w *world, want ...notice.Notice) {
	w.Helper()
	_, others := keepers(w)
	got, err := others.Open(w.ctx, notice.Notice{}, 100)
	if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		w.Errorf("open notices = %+v, err = %v, want %+v", got, err, want)
	}
}

// announcing returns a transition with which a run reaches the given states. All of them have to be
// announced.
func announcing(run status.RunID, seq int32, states ...string) store.Transition {
	t := next(run, seq)
	t.Announce = states
	return t
}

// noticeRules are the rules for stores that keep notices (notice.Keeper).
var noticeRules = []rule{
	{name: "notices/are written with the row or not at all", why: "no state may be announced that the run never reached, and none may be lost", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		runs := w.started(a, 2)
		w.land(a.writers[0], announcing(runs[0], 1, "parked", "overdue"), next(runs[1], 1))
		parked, overdue := notice.Notice{Run: runs[0], Seq: 1, State: "parked"}, notice.Notice{Run: runs[0], Seq: 1, State: "overdue"}
		wantOpen(w, overdue, parked)
		stale := announcing(runs[0], 1, "failed") // the journal has another row with this number
		out, err := b.writers[0].Commit(w.ctx, []store.Transition{stale})
		if err != nil || out[0].Landed {
			w.Fatalf("a stale row: %+v, err = %v", out, err)
		}
		w.bury(a)
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{announcing(runs[1], 2, "succeeded")}); err == nil {
			w.Fatalf("the row of a dead engine: %+v", out)
		}
		wantOpen(w, overdue, parked)
	}},
	{name: "notices/of a new run are kept", why: "a run without a call may end with its first row", run: func(w *world) {
		a := w.join(w.Store, 1)
		t := w.create(a)
		t.State, t.NextCheck, t.Announce = status.RunSucceeded, store.Never, []string{"succeeded"}
		t.Names = &naming.Names{Workflow: flowName, Name: "first"}
		w.land(a.writers[0], t)
		// The name of this run belongs to another run, so the store must keep nothing of the new
		// run.
		again := w.create(a)
		again.State, again.NextCheck, again.Announce, again.Names = t.State, t.NextCheck, t.Announce, t.Names
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{again}); err != nil || !out[0].Submitted.Exists {
			w.Fatalf("the same name again: %+v, err = %v", out, err)
		}
		wantOpen(w, notice.Notice{Run: t.Run, Seq: 0, State: "succeeded"})
	}},
	{name: "notices/are not open once announced", why: "each state is announced once, if no engine fails", run: func(w *world) {
		mine, others := keepers(w)
		a := w.join(w.Store, 1)
		runs := w.started(a, 2)
		w.land(a.writers[0], announcing(runs[0], 1, "parked"), announcing(runs[1], 1, "parked"))
		w.land(a.writers[0], announcing(runs[0], 2, "parked"))
		first, second, third := notice.Notice{Run: runs[0], Seq: 1, State: "parked"}, notice.Notice{Run: runs[0], Seq: 2, State: "parked"}, notice.Notice{Run: runs[1], Seq: 1, State: "parked"}
		wantOpen(w, first, second, third)
		for _, page := range []struct{ after, want notice.Notice }{{notice.Notice{}, first}, {first, second}, {second, third}} {
			if got, err := mine.Open(w.ctx, page.after, 1); err != nil || !reflect.DeepEqual(got, []notice.Notice{page.want}) {
				w.Errorf("one open notice after %+v: %+v, err = %v", page.after, got, err)
			}
		}
		var wg sync.WaitGroup
		for _, k := range []notice.Keeper{mine, others} {
			wg.Go(func() {
				if err := k.Announced(w.ctx, first, third, notice.Notice{Run: 77, Seq: 1, State: "parked"}, notice.Notice{Run: runs[0], Seq: 2, State: "failed"}); err != nil {
					w.Errorf("announced: %v", err)
				}
			})
		}
		wg.Wait()
		wantOpen(w, second)
		want := []notice.Kept{{Notice: first, Done: true}, {Notice: second}}
		if got, err := others.OfRun(w.ctx, runs[0]); err != nil || !reflect.DeepEqual(got, want) {
			w.Errorf("notices of the run: %+v, err = %v, want %+v", got, err, want)
		}
		if got, err := others.OfRun(w.ctx, 77); err != nil || len(got) != 0 {
			w.Errorf("notices of no run: %+v, err = %v", got, err)
		}
		if err := mine.Announced(w.ctx); err != nil {
			w.Errorf("announced nothing: %v", err)
		}
		if alerts, err := w.Store.Alerts(w.ctx, runs[0], 10); err != nil || len(alerts) != 0 {
			w.Errorf("a notice is no alert: %+v, err = %v", alerts, err)
		}
	}},
	{name: "notices/go with alerts and messages in one row", why: "a row that parks a run has an alert, too", run: func(w *world) {
		a := w.join(w.Store, 1)
		run := w.started(a, 1)[0]
		t := announcing(run, 1, "parked")
		t.Alerts = []store.Alert{{Kind: "parked", Step: "charge", Code: "denied", Message: "no"}}
		t.Consumed = []store.MessageID{1 << 40}
		w.land(a.writers[0], t)
		wantOpen(w, notice.Notice{Run: run, Seq: 1, State: "parked"})
		if alerts, err := w.Store.Alerts(w.ctx, run, 10); err != nil || len(alerts) != 1 || alerts[0].Step != "charge" {
			w.Errorf("alerts: %+v, err = %v", alerts, err)
		}
	}},
	{name: "notices/of a removed run are gone", why: "nothing can be said of a run that is not there", run: func(w *world) {
		mine, _ := keepers(w)
		if _, ok := w.Store.Store.(store.Retainer); !ok {
			return // the store keeps all runs
		}
		a := w.join(w.Store, 1)
		runs := w.started(a, 2)
		t := end(runs[0], 1, status.RunSucceeded)
		t.Announce = []string{"succeeded"}
		w.land(a.writers[0], t, announcing(runs[1], 1, "parked"))
		w.forgets(w.Other, base.Add(time.Hour), 1, 1)
		wantOpen(w, notice.Notice{Run: runs[1], Seq: 1, State: "parked"})
		if got, err := mine.OfRun(w.ctx, runs[0]); err != nil || len(got) != 0 {
			w.Errorf("notices of the removed run: %+v, err = %v", got, err)
		}
	}},
}
