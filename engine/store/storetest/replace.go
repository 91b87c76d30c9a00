package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// replaceRules are the rules about runs that replace the run which holds their unique key
// (Transition.Replaces).
var replaceRules = []rule{
	{name: "replace/the open run gets the message, and the new run waits", why: "if one was committed without the other, two runs would be open with work, or the key would have none", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second := w.replacing(a, n)
		w.lands(a, second)
		w.wantReplaced(first, 1)
		if g := wantGoal(w, "k", first, goals.Open); g.Next != second.Run || g.NextName != naming.RunName(second.Run) {
			w.Errorf("%+v, want that run %d waits", g, second.Run)
		}
		if _, err := resetting(w, "k"); !errors.Is(err, goals.ErrOpen) {
			w.Errorf("reset: err = %v", err)
		}
		if sub := w.submit(a.writers[0], w.create(a), n); !sub.Exists || sub.Run != first {
			w.Errorf("a submission that does not replace: %+v, want run %d", sub, first)
		}
		w.wantNext(a)
		w.full(a, admit(second.Run, 1))
		w.land(a.writers[0], end(first, 1, status.RunCancelled))
		if g := wantGoal(w, "k", first, goals.Open); g.Next != second.Run {
			w.Errorf("%+v, want that run %d waits", g, second.Run)
		}
		// The submission finds the run that waits for the key. It is committed once alone, and once
		// in a batch with another transition.
		for _, batched := range []bool{false, true} {
			batch := []store.Transition{w.create(a)}
			batch[0].Names = &n
			if batched {
				batch = append(batch, w.create(a))
			}
			if out := w.commit(a.writers[0], batch...); out[0].Landed || out[0].Submitted != (store.Submitted{Run: second.Run, Name: naming.RunName(second.Run), Exists: true}) {
				w.Errorf("a submission after the first run: %+v, want run %d", out[0], second.Run)
			}
		}
		w.wantNext(a, second.Run)
		w.land(a.writers[0], admit(second.Run, 1))
		w.wantNext(a)
		if g := wantGoal(w, "k", second.Run, goals.Open); g.Next != 0 {
			w.Errorf("%+v, want that no run waits", g)
		}
		w.wantReplaced(second.Run, 0)
		w.land(a.writers[0], end(second.Run, 2, status.RunSucceeded))
		wantGoal(w, "k", second.Run, goals.Reached)
	}},
	{name: "replace/only the newest run waits", why: "each replacement would otherwise do the work of an order that was changed again", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second, third := w.replacing(a, n), w.replacing(b, n)
		w.lands(a, second)
		w.lands(b, third)
		w.wantReplaced(first, 1)
		w.wantReplaced(second.Run, 1)
		w.land(a.writers[0], end(first, 1, status.RunCancelled))
		w.wantNext(a)
		w.wantNext(b, third.Run)
		w.full(a, admit(second.Run, 1)) // `second` is not cancelled yet, but `third` gets the key
		w.land(b.writers[0], admit(third.Run, 1))
		w.full(a, admit(second.Run, 1))
		w.land(a.writers[0], end(second.Run, 1, status.RunCancelled))
		wantGoal(w, "k", third.Run, goals.Open)
	}},
	{name: "replace/a goal that is reached beats the run that waits", why: "the old run may succeed before it is cancelled, and then the new one would reach the goal a second time (I11)", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second := w.replacing(a, n)
		w.lands(a, second)
		w.wantBeaten(a)
		w.land(a.writers[0], end(first, 1, status.RunSucceeded))
		w.wantNext(a)
		w.wantBeaten(a, naming.Beaten{Run: second.Run, By: first})
		w.full(a, admit(second.Run, 1))
		if out := w.commit(a.writers[0], w.replacing(a, n)); out[0].Landed || out[0].Submitted.Run != first {
			w.Errorf("a replacement after the goal: %+v, want run %d", out[0], first)
		}
		w.land(a.writers[0], end(second.Run, 1, status.RunCancelled))
		w.wantBeaten(a)
		wantGoal(w, "k", first, goals.Reached)
		active := under("a", naming.KeyScope{Scope: naming.ScopeActive})
		open := reached(w, a, active, status.RunRunning, base)
		after := w.replacing(a, active)
		w.lands(a, after)
		w.land(a.writers[0], end(open, 1, status.RunSucceeded))
		w.wantBeaten(a)
		w.wantNext(a, after.Run) // with the scope `active`, the key is free when its run has succeeded
		w.land(a.writers[0], admit(after.Run, 1))
	}},
	{name: "replace/a key that is free is not waited for", why: "the run would wait for a run that does not exist", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		w.wantFree(a, w.replacing(a, n))
		if g, err := goals.Find(w.ctx, w.Other, flowName, "k"); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("context of an unknown key: %+v, err = %v", g, err)
		}
		reached(w, a, n, status.RunCompensated, base)
		t := w.replacing(a, n)
		w.wantFree(a, t)
		w.wantNothing(t.Run, "none")
		t.Replaces = nil
		w.lands(a, t)
		for name, bad := range map[string]func(t *store.Transition){
			"without a key":     func(t *store.Transition) { t.Names = &naming.Names{Workflow: flowName} },
			"without data":      func(t *store.Transition) { t.Replaces.Data = nil },
			"without a kind":    func(t *store.Transition) { t.Replaces.Kind = 0 },
			"with results":      func(t *store.Transition) { t.Names.From = t.Run - 1 },
			"not a submission":  func(t *store.Transition) { t.Names = nil },
			"admitted too soon": func(t *store.Transition) { t.Admit = true },
		} {
			t := w.replacing(a, n)
			bad(&t)
			if out, err := a.writers[0].Commit(w.ctx, []store.Transition{t}); err != nil || out[0].Err == nil {
				w.Errorf("%s: %+v, err = %v", name, out, err)
			}
		}
	}},
	{name: "replace/a run that waits may end", why: "a person may cancel the new run, and then the old one keeps the key", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second := w.replacing(a, n)
		w.lands(a, second)
		w.land(a.writers[0], end(second.Run, 1, status.RunCancelled))
		if g := wantGoal(w, "k", first, goals.Open); g.Next != 0 {
			w.Errorf("%+v, want that no run waits", g)
		}
		w.land(a.writers[0], end(first, 1, status.RunCancelled))
		w.wantNext(a)
		wantGoal(w, "k", first, goals.Free)
		t := w.create(a)
		if sub := w.submit(a.writers[0], t, n); sub.Exists {
			w.Errorf("after both have ended: %+v", sub)
		}
		w.wantNext(a)
		wantGoal(w, "k", t.Run, goals.Open)
	}},
	{name: "replace/a run that has its key already is admitted again", why: "the engine may repeat an admission, and the run has what the admission gives", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base) // it has the key since its submission
		w.land(a.writers[0], admit(first, 1))
		second := w.replacing(a, n)
		w.lands(a, second)
		w.land(a.writers[0], end(first, 2, status.RunCancelled))
		w.land(a.writers[0], admit(second.Run, 1))
		w.land(a.writers[0], admit(second.Run, 2))
		if out := w.commit(a.writers[0], admit(second.Run, 1)); !errors.Is(out[0].Err, store.ErrStale) {
			w.Errorf("a row that exists: %+v, want ErrStale", out)
		}
		w.wantRows(second.Run, 3)
		wantGoal(w, "k", second.Run, goals.Open)
	}},
	{name: "replace/a tick returns as many runs of each kind as the limit says", why: "runs that wait in line must not hide the runs that wait for a key", run: func(w *world) {
		a := w.join(w.Store, 1)
		var line, keyed []status.RunID
		for i := range 3 {
			t := w.limited(a, fmt.Sprint("eu", i), 1, 0, false)
			w.land(a.writers[0], t)
			n := under(fmt.Sprint("k", i), naming.KeyScope{})
			first := reached(w, a, n, status.RunRunning, base)
			second := w.replacing(a, n)
			w.lands(a, second)
			w.land(a.writers[0], end(first, 1, status.RunCancelled))
			line, keyed = append(line, t.Run), append(keyed, second.Run)
		}
		tick, err := w.Store.Tick(w.ctx, a.id, time.Hour, 2)
		if want := slices.Concat(line[:2], keyed[:2]); err != nil || !slices.Equal(tick.Next, want) {
			w.Errorf("next = %v, err = %v, want %v", tick.Next, err, want)
		}
		for i := range 2 {
			w.land(a.writers[0], admit(line[i], 1))
			w.land(a.writers[0], admit(keyed[i], 1))
		}
		w.wantNext(a, line[2], keyed[2])
	}},
	{name: "replace/a run that is undone already gets no message", why: "the verb would only be refused, once for each replacement", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		undone := next(first, 1)
		undone.State = status.RunCompensating
		w.land(a.writers[0], undone)
		second := w.replacing(a, n)
		w.lands(a, second)
		w.wantReplaced(first, 0)
		w.land(a.writers[0], end(first, 2, status.RunCompensated))
		w.wantNext(a, second.Run)
	}},
	{name: "replace/a run waits for its key and for a place", why: "it must not start without one of them, and must not stop the line for others while it cannot start", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := w.limited(a, "eu", 2, 0, true)
		first.Names = &n
		w.land(a.writers[0], first)
		second := w.replacing(a, n)
		second.Room = &naming.Room{Workflow: flowName, Key: "eu", Limit: 2, Rank: base}
		w.lands(a, second)
		other := w.limited(a, "eu", 2, time.Second, false)
		w.land(a.writers[0], other)
		w.wantNext(a, other.Run) // `second` cannot get its key yet, and does not stop the line
		w.full(a, admit(second.Run, 1))
		w.land(a.writers[0], admit(other.Run, 1))
		filler := w.limited(a, "eu", 2, -time.Hour, false)
		w.land(a.writers[0], filler)
		w.land(a.writers[0], end(first.Run, 1, status.RunCancelled))
		w.wantNext(a, filler.Run)
		w.land(a.writers[0], admit(filler.Run, 1))
		w.wantNext(a)
		w.full(a, admit(second.Run, 1)) // the key of `second` is free, but no place is free
		wantGoal(w, "k", first.Run, goals.Open)
		w.land(a.writers[0], end(other.Run, 2, status.RunSucceeded))
		w.wantNext(a, second.Run)
		w.land(a.writers[0], admit(second.Run, 1))
		w.full(a, w.limited(a, "eu", 2, 0, true))
		wantGoal(w, "k", second.Run, goals.Open)
	}},
	{name: "replace/the owner of the run that waits gets the hint", why: "the engine that accepted the new run may die", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second := w.replacing(b, n)
		w.lands(b, second)
		w.land(a.writers[0], end(first, 1, status.RunCancelled))
		w.wantNext(a)
		if err := w.Other.Leave(w.ctx, b.id); err != nil {
			w.Fatal(err)
		}
		if out, err := b.writers[0].Commit(w.ctx, []store.Transition{admit(second.Run, 1)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("an engine that left: %+v, err = %v, want ErrFenced", out, err)
		}
		if g := wantGoal(w, "k", first, goals.Open); g.Next != second.Run {
			w.Errorf("%+v, want that run %d waits", g, second.Run)
		}
		taken := next(second.Run, 1)
		taken.Owner = &a.id
		w.land(a.writers[0], taken)
		w.wantNext(a, second.Run)
		w.land(a.writers[0], admit(second.Run, 2))
	}},
	{name: "replace/a lost answer makes no second replacement", why: "the second try would cancel the run of the first one", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		for _, landed := range []bool{false, true} {
			first := reached(w, a, n, status.RunRunning, base)
			second := w.replacing(a, n)
			w.Lose(w.T, landed)
			w.lands(a, second)
			w.wantReplaced(first, 1)
			w.wantReplaced(second.Run, 0)
			w.land(a.writers[0], end(first, 1, status.RunCancelled))
			w.Lose(w.T, landed)
			w.land(a.writers[0], admit(second.Run, 1))
			w.wantRows(second.Run, 2)
			wantGoal(w, "k", second.Run, goals.Open)
			w.land(a.writers[0], end(second.Run, 2, status.RunCancelled))
		}
	}},
	{name: "replace/an heir of results does not take the key from the run that waits", why: "the run that waits would never start", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second := w.replacing(a, n)
		w.lands(a, second)
		w.land(a.writers[0], end(first, 1, status.RunCompensated))
		t := w.heir(a, first, n)
		if sub := w.submit(a.writers[0], t, *t.Names); !sub.Exists || sub.Run != second.Run {
			w.Errorf("%+v, want run %d", sub, second.Run)
		}
		w.wantHeir(first, 0)
	}},
	{name: "replace/retention leaves the run that waits its key", need: retains, why: "the row of the key is the only trace of the run that waits", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base)
		second := w.replacing(a, n)
		w.lands(a, second)
		w.land(a.writers[0], end(first, 1, status.RunCancelled))
		for _, m := range w.replaced(first) {
			if err := w.Store.Discard(w.ctx, first, []store.MessageID{m.ID}); err != nil {
				w.Fatal(err)
			}
		}
		stats, err := w.Harness.Store.(store.Retainer).Retain(w.ctx, base.Add(time.Hour), 1000)
		if err != nil || stats.Runs != 1 {
			w.Fatalf("retain: %+v, err = %v", stats, err)
		}
		if sub := w.submit(a.writers[0], w.create(a), n); !sub.Exists || sub.Run != second.Run {
			w.Errorf("%+v, want run %d", sub, second.Run)
		}
		w.wantNext(a, second.Run)
		w.land(a.writers[0], admit(second.Run, 1))
		wantGoal(w, "k", second.Run, goals.Open)
	}},
	{name: "replace/of many at once the newest waits", why: "two engines may accept replacements in the same moment", run: func(w *world) {
		const engines, rounds = 4, 6
		n := under("k", naming.KeyScope{})
		var (
			all    sync.WaitGroup
			landed = make([][]status.RunID, engines)
			actors []actor
		)
		for i := range engines {
			s := w.Store
			if i%2 == 1 {
				s = w.Other
			}
			actors = append(actors, w.join(s, 1))
		}
		first := reached(w, actors[0], n, status.RunRunning, base)
		for i, a := range actors {
			var tries []store.Transition
			for range rounds {
				tries = append(tries, w.replacing(a, n))
			}
			all.Go(func() {
				for _, t := range tries {
					out, err := a.writers[0].Commit(w.ctx, []store.Transition{t})
					if err != nil || !out[0].Landed {
						w.Errorf("replacement: %+v, err = %v", out, err)
						return
					}
					landed[i] = append(landed[i], t.Run)
				}
			})
		}
		all.Wait()
		g := wantGoal(w, "k", first, goals.Open)
		w.wantReplaced(first, 1)
		runs := slices.Concat(landed...)
		if !slices.Contains(runs, g.Next) {
			w.Errorf("run %d waits, which is none of %v", g.Next, runs)
		}
		for _, run := range runs {
			want := 1
			if run == g.Next {
				want = 0
			}
			w.wantReplaced(run, want)
		}
	}},
}

// replacing returns the submission of a run that replaces the run which holds the key.
func (w *world) replacing(a actor, n naming.Names) store.Transition {
	t := w.create(a)
	t.Names, t.State = &n, status.RunQueued
	t.Replaces = &store.Message{Kind: store.MessageVerb, By: "ann", Dedup: "replaced", Data: fmt.Appendf(nil, "cancel for %d", t.Run)}
	return t
}

// lands commits a submission, and checks that its run is new.
func (w *world) lands(a actor, t store.Transition) {
	w.Helper()
	if out := w.commit(a.writers[0], t); !out[0].Landed || out[0].Submitted.Run != t.Run {
		w.Fatalf("run %d: %+v, want a new run", t.Run, out[0])
	}
}

// wantFree commits a submission that replaces a run, and checks that the outcome is ErrFree.
func (w *world) wantFree(a actor, t store.Transition) {
	w.Helper()
	if out, err := a.writers[0].Commit(w.ctx, []store.Transition{t}); err != nil || out[0].Landed || !errors.Is(out[0].Err, naming.ErrFree) {
		w.Errorf("run %d: %+v, err = %v, want ErrFree", t.Run, out, err)
	}
}

// replaced returns the messages of a run, as another process sees them.
func (w *world) replaced(run status.RunID) []store.Message {
	w.Helper()
	all, err := w.Other.Messages(w.ctx, run, 0, 100)
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// wantReplaced checks how many messages wait for the run: messages of submissions that replace the
// run. All these messages have the same Dedup, so at most one of them waits.
func (w *world) wantReplaced(run status.RunID, want int) {
	w.Helper()
	all := w.replaced(run)
	for _, m := range all {
		if m.Kind != store.MessageVerb || m.By != "ann" || m.Dedup != "replaced" || len(m.Data) < len("cancel for ") || m.At.IsZero() {
			w.Errorf("message of run %d: %+v", run, m)
		}
	}
	if len(all) != want {
		w.Errorf("run %d has %d messages, want %d", run, len(all), want)
	}
}

// wantBeaten checks which runs of an engine cannot get the key for which they wait.
func (w *world) wantBeaten(a actor, want ...naming.Beaten) {
	w.Helper()
	tick, err := w.Store.Tick(w.ctx, a.id, time.Hour, 10)
	slices.SortFunc(tick.Beaten, func(a, b naming.Beaten) int { return cmp.Compare(a.Run, b.Run) })
	if err != nil || !slices.Equal(tick.Beaten, want) {
		w.Errorf("beaten runs of engine %d = %v, err = %v, want %v", a.id, tick.Beaten, err, want)
	}
}
