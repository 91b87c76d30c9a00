package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// keptRules are the rules for stores that change runs after their commit: stores that remove
// old runs, and stores that replace the sealed data of runs.
var keptRules = slices.Concat(retainRules, ownRetentionRules, needed(reseals, resealRules))

// retainRules are the rules for stores that remove old runs (store.Retainer).
var retainRules = []rule{
	{name: "retain/what ended before is gone whole", need: retains, why: "a run that is half gone misleads its reader, and a name that is taken by nothing visible cannot be explained", run: func(w *world) {
		a := w.join(w.Store, 1)
		old, key := w.whole(a, "old", "k1"), naming.Names{Name: "old", Workflow: flowName, Key: "k1"}
		w.land(a.writers[0], end(old, 2, status.RunSucceeded))
		stays := w.whole(a, "stays", "k2")
		w.forgets(w.Other, base.Add(time.Hour), 1, 1)
		w.gone(old, key.Name)
		w.wantRows(stays, 2)
		if sub := w.submit(a.writers[0], w.create(a), naming.Names{Name: "new", Workflow: flowName, Key: "k2"}); !sub.Exists || sub.Run != stays {
			w.Errorf("the key of the run that stays: %+v, want run %d", sub, stays)
		}
		again := w.create(a)
		if sub := w.submit(a.writers[0], again, key); sub.Exists || sub.Run != again.Run {
			w.Errorf("the name and key of the run that is gone: %+v, want a new run", sub)
		}
		if got := w.tail(old); got != "" {
			w.Errorf("of the run that is gone there is %s", got)
		}
		if got := w.tail(stays); got != "1 late, 1 alerts, 1 logs, 4 steps, 1 snapshots" {
			w.Errorf("of the run that stays there is %s", got)
		}
	}},
	{name: "retain/what is open, ended since or is spoken to stays", need: retains, why: "age counts from the end, and a message to a run is answered", run: func(w *world) {
		a := w.join(w.Store, 1)
		open, parked, since, spoken, ended := w.whole(a, "open", ""), w.whole(a, "parked", ""), w.whole(a, "since", ""), w.whole(a, "spoken", ""), w.whole(a, "ended", "")
		w.land(a.writers[0], end(parked, 2, status.RunParked))
		late := end(since, 2, status.RunFailed)
		late.At = base.Add(time.Hour)
		w.land(a.writers[0], late)
		w.land(a.writers[0], end(spoken, 2, status.RunSucceeded), end(ended, 2, status.RunCancelled))
		id := w.post(store.Message{Run: spoken, Kind: store.MessageVerb, By: "p", Data: []byte("x")})
		w.forgets(w.Store, base.Add(time.Hour), 1, 4)
		w.gone(ended, "ended")
		for _, run := range []status.RunID{open, parked, since, spoken} {
			w.load(run)
		}
		if err := w.Store.Discard(w.ctx, spoken, []store.MessageID{id}); err != nil {
			w.Fatal(err)
		}
		w.forgets(w.Store, base.Add(2*time.Hour), 2, 2)
		w.gone(since, "since")
		w.gone(spoken, "spoken")
		w.load(open)
		w.load(parked)
		if _, err := w.Store.Post(w.ctx, store.Message{Run: spoken, Kind: store.MessageVerb, By: "p", Data: []byte("x")}); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("a message to a run that is gone: err = %v, want ErrNotFound", err)
		}
	}},
	{name: "retain/what is gone is not begun again", need: retains, why: "a message to a run that is just being removed must not be answered as if it was obeyed", run: func(w *world) {
		a := w.join(w.Store, 1)
		ended, other, open := w.whole(a, "ended", ""), w.whole(a, "other", ""), w.started(a, 2)
		w.land(a.writers[0], end(ended, 2, status.RunSucceeded), end(other, 2, status.RunSucceeded))
		w.forgets(w.Store, base.Add(time.Hour), 2, 2)
		again := next(ended, 3)
		again.State, again.Owner, again.NextCheck = status.RunCompensating, &a.id, base.Add(time.Hour)
		taken := next(other, 3)
		taken.Owner = &a.id
		batch := []store.Transition{again, taken, next(open[0], 1), end(open[1], 1, status.RunFailed)}
		for _, o := range w.commit(a.writers[0], batch[:1]...) {
			if o.Landed || !errors.Is(o.Err, store.ErrStale) {
				w.Errorf("alone: %+v, want ErrStale", o)
			}
		}
		out := w.commit(a.writers[0], batch...)
		for i, o := range out {
			if gone := i < 2; o.Landed == gone || gone && !errors.Is(o.Err, store.ErrStale) {
				w.Errorf("outcome %d = %+v, want ErrStale for the first two", i, o)
			}
		}
		w.gone(ended, "ended")
		w.gone(other, "other")
		w.wantRows(open[0], 2)
		w.wantRows(open[1], 2)
	}},
	{name: "retain/what is gone is not begun again, with whatever it is sent", need: retains, why: "a store that has several ways to write a batch must look in each of them whether the run is still there", run: func(w *world) {
		a := w.join(w.Store, 1)
		stale := w.started(a, 1)[0]
		w.land(a.writers[0], next(stale, 1))
		named := func(name, key string) store.Transition {
			t := w.create(a)
			t.Names = &naming.Names{Name: name, Workflow: flowName, Key: key}
			return t
		}
		alerts, listed := w.create(a), w.create(a)
		alerts.Alerts = []store.Alert{{Kind: "parked", Code: "c"}}
		listed.NewNodes = []store.NodeName{{Node: 3, Step: 2, Name: "ship[1]"}}
		w.submit(a.writers[0], w.create(a), naming.Names{Name: "taken", Workflow: flowName, Key: "taken"})
		begun := w.create(a)
		begun.Run = stale
		for _, c := range []struct {
			with  string
			other store.Transition
			lands bool
		}{
			{"a run that begins", w.create(a), true},
			{"a name", named("fresh", ""), true},
			{"a key", named("", "fresh"), true},
			{"alerts", alerts, true},
			{"instances", listed, true},
			{"a row that is there already", next(stale, 1), false},
			{"a run that has begun already", begun, false},
			{"a name that is taken", named("taken", ""), false},
			{"a key that is taken", named("", "taken"), false},
		} {
			ended := w.whole(a, "", "")
			w.land(a.writers[0], end(ended, 2, status.RunSucceeded))
			if s, err := w.Harness.Store.(store.Retainer).Retain(w.ctx, base.Add(time.Hour), 1000); err != nil || s.Runs != 1 {
				w.Fatalf("retain: %+v, err = %v, want one run to go", s, err)
			}
			again := next(ended, 3)
			again.State, again.Owner, again.NextCheck = status.RunCompensating, &a.id, base.Add(time.Hour)
			out := w.commit(a.writers[0], c.other, again)
			if out[0].Landed != c.lands {
				w.Errorf("with %s: %+v, want landed %t", c.with, out[0], c.lands)
			}
			if o := out[1]; o.Landed || !errors.Is(o.Err, store.ErrStale) {
				w.Errorf("with %s: %+v, want ErrStale", c.with, o)
			}
			w.gone(ended, fmt.Sprint(ended))
		}
	}},
	{name: "retain/a few at a time, all in the end", need: retains, why: "a long removal must not delay other work, nor stop early", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 25)
		for i, id := range ids {
			if i%5 != 0 {
				w.land(a.writers[0], end(id, 1, status.RunSucceeded))
			}
		}
		r, gone := w.Harness.Store.(store.Retainer), 0
		teller := w.Harness.Store.(store.Retainer)
		if last, err := teller.Retained(w.ctx); err != nil || last >= ids[0] {
			w.Errorf("removed up to %d, err = %v, before anything was", last, err)
		}
		for n := 1; ; n++ {
			s, err := r.Retain(w.ctx, base.Add(time.Hour), 4)
			if err != nil || s.Runs+s.Kept > 4 {
				w.Fatalf("retain: %+v, err = %v, want 4 runs at most", s, err)
			}
			gone += s.Runs
			if !s.More {
				break
			}
			if n == 10 {
				w.Fatal("no end after 10 calls for 25 runs")
			}
		}
		if gone != 20 {
			w.Errorf("%d runs went, want 20", gone)
		}
		if last, err := teller.Retained(w.ctx); err != nil || last < ids[24] {
			w.Errorf("removed up to %d, err = %v, want %d: it would pass for lost", last, err, ids[24])
		}
		for i, id := range ids {
			if i%5 == 0 {
				w.load(id)
			} else {
				w.gone(id, fmt.Sprint(id))
			}
		}
		w.forgets(w.Other, base.Add(time.Hour), 0, 5)
		w.land(a.writers[0], end(ids[0], 1, status.RunFailed))
		w.forgets(w.Store, base.Add(time.Hour), 1, 4)
		w.land(a.writers[0], next(ids[5], 1))
		w.wantRows(ids[5], 2)
	}},
}

// ownRetentionRules are the rules for workflows with a retention of their own.
var ownRetentionRules = []rule{
	{name: "retain/a workflow may keep its runs for another time", need: retains, why: "one workflow runs a million times a day, and another one is audited for years", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := time.Now()
		flows, err := w.Store.PutDefinition(w.ctx, store.Definition{Digest: "kept", Data: []byte("kept"), Workflows: []store.DefinedWorkflow{
			{Name: "short", Retention: time.Hour}, {Name: flowName}, {Name: "long", Retention: 48 * time.Hour},
		}})
		if err != nil {
			w.Fatal(err)
		}
		ended := func(flow string, ago time.Duration) status.RunID {
			c := w.create(a)
			c.At, c.Workflow = now.Add(-72*time.Hour), flows[flow]
			w.submit(a.writers[0], c, naming.Names{Workflow: flow})
			t := end(c.Run, 1, status.RunSucceeded)
			t.At = now.Add(-ago)
			w.land(a.writers[0], t)
			return c.Run
		}
		short, fresh := ended("short", 2*time.Hour), ended("short", 10*time.Minute)
		plain, long, older := ended(flowName, 30*time.Hour), ended("long", 30*time.Hour), ended("long", 50*time.Hour)
		w.forgets(w.Store, time.Time{}, 2, 3) // the engine keeps runs for ever
		w.gone(short, "short")
		w.gone(older, "older")
		for _, run := range []status.RunID{fresh, plain, long} {
			w.load(run)
		}
		w.forgets(w.Other, now.Add(-24*time.Hour), 1, 2) // the engine keeps runs for a day
		w.gone(plain, "plain")
		w.load(fresh)
		w.load(long)
	}},
	{name: "retain/nothing goes that nobody limits", need: retains, why: "an engine without a retention keeps every run", run: func(w *world) {
		a := w.join(w.Store, 1)
		run := w.whole(a, "old", "k")
		w.land(a.writers[0], end(run, 2, status.RunSucceeded))
		w.forgets(w.Store, time.Time{}, 0, 0)
		w.wantRows(run, 3)
	}},
}

func retains(h Harness) bool { _, ok := h.Store.(store.Retainer); return ok }

// The type aged has helper methods for tests of retention: they create runs with many kinds of
// rows, and check what a store removes.
type aged struct {
	messaging
	shorts shortened
}

// whole creates a run with many kinds of rows: two journal rows, steps, names of nodes, a snapshot,
// a late reply and a log line. If `key` is not "", the run also has a unique key.
func (w aged) whole(a actor, name, key string) status.RunID {
	w.Helper()
	t := w.create(a)
	t.NewNodes = []store.NodeName{{Node: 3, Step: 2, Name: "ship[1]"}}
	if sub := w.submit(a.writers[0], t, naming.Names{Name: name, Workflow: flowName, Key: key, KeyScope: naming.KeyScope{Scope: naming.ScopeActive}}); sub.Exists {
		w.Fatalf("submit %s: it exists", name)
	}
	second := next(t.Run, 1)
	second.Steps = []store.StepRow{{Node: 0, State: status.StepSucceeded, Attempt: 1}}
	w.land(a.writers[0], second)
	w.shorts.keep(a, t.Run, 2, "snapshot")
	if err := w.Store.KeepLate(w.ctx, store.LateReply{Run: t.Run, Node: 1, Call: 1, Step: "charge", At: base, Outcome: "ok"}); err != nil {
		w.Fatal(err)
	}
	if err := w.Store.KeepLogs(w.ctx, []store.LogLine{{Run: t.Run, At: base, Step: "charge", Attempt: 1, Level: "info", Message: "m"}}); err != nil {
		w.Fatal(err)
	}
	return t.Run
}

// forgets makes a store remove runs that ended before the given time. The parameter `gone` is the
// expected number of removed runs. The parameter `held` is the expected number of runs that were
// examined but not removed.
func (w aged) forgets(s store.Full, before time.Time, gone, held int) {
	w.Helper()
	got, err := s.Store.(store.Retainer).Retain(w.ctx, before, 1000)
	if err != nil || got.Runs != gone || got.Kept != held || got.More {
		w.Fatalf("retain: %+v, err = %v, want %d runs to go and %d to stay", got, err, gone, held)
	}
}

// gone checks that no method of the store finds the run with this id and name.
func (w aged) gone(run status.RunID, name string) {
	w.Helper()
	for i, s := range []store.Store{w.Store, w.Other} {
		if _, _, err := store.LoadRun(w.ctx, s, run); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("store %d: load: err = %v, want ErrNotFound", i, err)
		}
		if got, err := s.Load(w.ctx, run); err != nil || len(got) != 0 {
			w.Errorf("store %d: load many: %d runs, err = %v", i, len(got), err)
		}
		if rows, err := s.Rows(w.ctx, run, 0, 10); err != nil && !errors.Is(err, store.ErrNotFound) || len(rows) != 0 {
			w.Errorf("store %d: %d rows, err = %v", i, len(rows), err)
		}
		for _, id := range []string{name, fmt.Sprint(run)} {
			if r, err := store.Complete(s).Find(w.ctx, id); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("store %d: find %s: %+v, err = %v, want ErrNotFound", i, id, r, err)
			}
		}
		list, err := s.Runs(w.ctx, store.RunFilter{})
		for _, r := range list {
			if r.Run == run {
				w.Errorf("store %d: the run is listed", i)
			}
		}
		if err != nil {
			w.Error(err)
		}
	}
}

// tail returns, as a text, how many late replies, alerts, log lines, steps and snapshots the store
// has for a run. It returns "" if the store has none of them.
func (w aged) tail(run status.RunID) string {
	w.Helper()
	late, err1 := w.Store.LateReplies(w.ctx, run)
	alerts, err2 := w.Store.Alerts(w.ctx, run, 10)
	logs, err3 := w.Store.Logs(w.ctx, run, 0, 10)
	steps, err4 := w.Store.StepRows(w.ctx, run)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			w.Error(err)
		}
	}
	short, err := w.shorts.keeper(w.Store).Snapshotted(w.ctx, run)
	if err != nil {
		w.Error(err)
	}
	if len(late)+len(alerts)+len(logs)+len(steps)+len(short) == 0 {
		return ""
	}
	return fmt.Sprintf("%d late, %d alerts, %d logs, %d steps, %d snapshots", len(late), len(alerts), len(logs), len(steps), len(short))
}
