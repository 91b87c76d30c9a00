package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// keepsGoals reports whether the store under test shows and frees unique keys.
func keepsGoals(h Harness) bool { _, ok := goals.Of(h.Store); return ok }

// under returns names with the given unique key and the scope `h`.
func under(key string, h naming.KeyScope) naming.Names {
	return naming.Names{Workflow: flowName, Key: key, KeyScope: h}
}

// reached submits a run with the names `n`, and changes the run to the state `s` at the time `at`.
// If `s` is RunRunning, the run stays open.
func reached(w *world, a actor, n naming.Names, s status.RunState, at time.Time) status.RunID {
	w.Helper()
	sub := w.submit(a.writers[0], w.create(a), n)
	if sub.Exists {
		w.Fatalf("key %q is held by run %d", n.Key, sub.Run)
	}
	if s != status.RunRunning {
		t := end(sub.Run, 1, s)
		t.At = at
		w.land(a.writers[0], t)
	}
	return sub.Run
}

// wantGoal checks the goal of a key, as another process sees it.
func wantGoal(w *world, key string, run status.RunID, s goals.State) goals.Goal {
	w.Helper()
	g, err := goals.Find(w.ctx, w.Other, flowName, key)
	if err != nil || g.Run != run || g.State != s || g.Name != naming.RunName(run) {
		w.Errorf("context of key %q: %+v, err = %v, want run %d (%s) and %s", key, g, err, run, naming.RunName(run), s)
	}
	return g
}

// resetting resets the goal of a key.
func resetting(w *world, key string) (goals.Goal, error) {
	role, _ := goals.Of(w.Other)
	return role.ResetGoal(w.ctx, goals.Reset{Workflow: flowName, Key: key, By: "ann", Reason: "the order was annulled"})
}

// goalRules are the rules for stores that show and free unique keys (goals.Keeper).
var goalRules = []rule{
	{name: "goals/the scope says which ended run holds its key", why: "the rule of each key holds in the statement that takes the key, alone and in a batch; what an earlier run of the key has done counts (S94, S95, S96, S97, S98, I11)", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := w.Now(w.Store)
		for _, c := range []struct {
			hold  naming.KeyScope
			state status.RunState
			at    time.Time
			held  goals.State
		}{
			{naming.KeyScope{}, status.RunRunning, now, goals.Open},
			{naming.KeyScope{}, status.RunParked, now, goals.NeedsPerson},
			{naming.KeyScope{}, status.RunSucceeded, now, goals.Reached},
			{naming.KeyScope{}, status.RunCompensated, now, goals.Free},
			{naming.KeyScope{Retain: time.Hour}, status.RunSucceeded, now, goals.Reached},
			{naming.KeyScope{Retain: time.Hour}, status.RunSucceeded, now.Add(-2 * time.Hour), goals.Free},
			{naming.KeyScope{Scope: naming.ScopeActive}, status.RunRunning, now, goals.Open},
			{naming.KeyScope{Scope: naming.ScopeActive}, status.RunCompensationFailed, now, goals.NeedsPerson},
			{naming.KeyScope{Scope: naming.ScopeActive}, status.RunSucceeded, now, goals.Free},
			{naming.KeyScope{Scope: naming.ScopeEver}, status.RunSucceeded, now, goals.Reached},
			{naming.KeyScope{Scope: naming.ScopeEver}, status.RunFailed, now, goals.Used},
		} {
			for _, batched := range []bool{false, true} {
				n := under(fmt.Sprintf("%v-%s-%v-%s-%v", c.hold.Scope, c.hold.Retain, c.state, c.at.Sub(now), batched), c.hold)
				first := reached(w, a, n, c.state, c.at)
				g := wantGoal(w, n.Key, first, c.held)
				if want := c.at.Add(c.hold.Retain); c.held == goals.Reached && (!g.ReachedAt.Equal(c.at.Truncate(time.Microsecond)) || c.hold.Retain > 0 && !g.FreeAt.Equal(want.Truncate(time.Microsecond))) {
					w.Errorf("%+v: reached at %s, free at %s", c, g.ReachedAt, g.FreeAt)
				}
				second := w.create(a)
				second.Names = &n
				batch := []store.Transition{second}
				if batched {
					other := w.create(a)
					o := under(n.Key+"-other", n.KeyScope)
					other.Names = &o
					batch = append(batch, other)
				}
				out := w.commit(a.writers[0], batch...)
				if c.held != goals.Free {
					if want := (store.Submitted{Run: first, Name: naming.RunName(first), Exists: true}); out[0].Landed || out[0].Submitted != want {
						w.Errorf("%s: %+v, want run %d, which holds the key", n.Key, out[0], first)
					}
					wantGoal(w, n.Key, first, c.held)
				} else if !out[0].Landed {
					w.Errorf("%s: %+v, want a new run", n.Key, out[0])
				} else {
					wantGoal(w, n.Key, second.Run, goals.Open)
				}
				if batched && !out[1].Landed {
					w.Errorf("%s: the other run: %+v", n.Key, out[1])
				}
			}
		}
	}},
	{name: "goals/a reset frees a goal once", why: "after an annulment a new run may reach the goal again, and it must be known who allowed that (S96, S99, I11)", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := w.Now(w.Store)
		n := under("k", naming.KeyScope{})
		if g, err := resetting(w, "k"); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("no such key: %+v, err = %v", g, err)
		}
		first := reached(w, a, n, status.RunRunning, now)
		if g, err := resetting(w, "k"); !errors.Is(err, goals.ErrOpen) || g.Run != first {
			w.Errorf("an open run: %+v, err = %v", g, err)
		}
		w.land(a.writers[0], end(first, 1, status.RunSucceeded))
		if g, err := resetting(w, "k"); err != nil || g.Run != first || g.State != goals.Reached {
			w.Errorf("reset = %+v, err = %v", g, err)
		}
		g := wantGoal(w, "k", first, goals.Free)
		if r := g.LastReset; g.Resets != 1 || r.By != "ann" || r.Reason != "the order was annulled" || r.Run != first || r.Name != naming.RunName(first) || r.At.IsZero() {
			w.Errorf("resets: %+v", g)
		}
		if g, err := resetting(w, "k"); !errors.Is(err, goals.ErrNotReached) {
			w.Errorf("again: %+v, err = %v", g, err)
		}
		second := reached(w, a, n, status.RunSucceeded, now)
		if sub := w.submit(a.writers[0], w.create(a), n); !sub.Exists || sub.Run != second {
			w.Errorf("after the second success: %+v, want run %d", sub, second)
		}
		role, _ := goals.Of(w.Other)
		if rs, err := role.Resets(w.ctx, first); err != nil || len(rs) != 1 || rs[0] != g.LastReset {
			w.Errorf("resets of the first run: %+v, err = %v", rs, err)
		}
		if rs, err := role.Resets(w.ctx, second); err != nil || len(rs) != 0 {
			w.Errorf("resets of the second run: %+v, err = %v", rs, err)
		}
		reached(w, a, under("ever", naming.KeyScope{Scope: naming.ScopeEver}), status.RunSucceeded, now)
		if g, err := resetting(w, "ever"); !errors.Is(err, goals.ErrEver) {
			w.Errorf("a key for one run ever: %+v, err = %v", g, err)
		}
		if _, err := role.ResetGoal(w.ctx, goals.Reset{Workflow: flowName, Key: "k", By: "ann"}); err == nil {
			w.Error("a reset without a reason is accepted")
		}
	}},
	{name: "goals/are listed by workflow and key", why: "the context of a key is a row that people can read (S100)", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := w.Now(w.Store)
		for _, k := range []string{"b", "a", "c"} {
			reached(w, a, under(k, naming.KeyScope{}), status.RunSucceeded, now)
		}
		reached(w, a, naming.Names{Workflow: "other", Key: "a"}, status.RunRunning, now)
		role, _ := goals.Of(w.Other)
		for _, c := range []struct {
			f    goals.Filter
			want string
		}{
			{goals.Filter{Limit: 10}, "order/a order/b order/c other/a "},
			{goals.Filter{Limit: 2}, "order/a order/b "},
			{goals.Filter{AfterWorkflow: "order", AfterKey: "b", Limit: 10}, "order/c other/a "},
			{goals.Filter{Workflow: flowName, AfterWorkflow: flowName, AfterKey: "a", Limit: 1}, "order/b "},
			{goals.Filter{Workflow: "other", Limit: 10}, "other/a "},
			{goals.Filter{Workflow: flowName, Key: "c", Limit: 10}, "order/c "},
		} {
			got := ""
			all, err := role.Goals(w.ctx, c.f)
			for _, g := range all {
				got += g.Workflow + "/" + g.Key + " "
			}
			if err != nil || got != c.want {
				w.Errorf("%+v: %q, err = %v, want %q", c.f, got, err, c.want)
			}
		}
	}},
	{name: "goals/outlive their removed runs", need: retains, why: "a goal that is forgotten with its run lets a late repetition of the same business event do everything twice (S95, S98, I11)", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := w.Now(w.Store)
		old := now.Add(-48 * time.Hour)
		first := w.create(a) // runs are examined in the order of their creation
		first.At = old
		runs := map[string]status.RunID{}
		for key, c := range map[string]struct {
			hold  naming.KeyScope
			state status.RunState
		}{
			"goal": {naming.KeyScope{}, status.RunSucceeded}, "undone": {naming.KeyScope{}, status.RunCompensated},
			"long": {naming.KeyScope{Retain: 72 * time.Hour}, status.RunSucceeded}, "short": {naming.KeyScope{Retain: time.Hour}, status.RunSucceeded},
			"active": {naming.KeyScope{Scope: naming.ScopeActive}, status.RunSucceeded}, "ever": {naming.KeyScope{Scope: naming.ScopeEver}, status.RunFailed},
		} {
			t := w.create(a)
			t.At = old
			n := under(key, c.hold)
			t.Names = &n
			w.land(a.writers[0], t)
			e := end(t.Run, 1, c.state)
			e.At = old
			w.land(a.writers[0], e)
			runs[key] = t.Run
		}
		stats, err := w.Harness.Store.(store.Retainer).Retain(w.ctx, now.Add(-24*time.Hour), 1000)
		if err != nil || stats.Runs != len(runs) {
			w.Fatalf("retain: %+v, err = %v", stats, err)
		}
		for key, want := range map[string]goals.State{"goal": goals.Reached, "long": goals.Reached, "ever": goals.Used} {
			if g := wantGoal(w, key, runs[key], want); !g.Gone {
				w.Errorf("key %q: %+v, want the run gone", key, g)
			}
			for range 2 { // in the second round, the cache of the store contains the workflow
				want := store.Submitted{Run: runs[key], Name: naming.RunName(runs[key]), Exists: true, Gone: true}
				if sub := w.submit(a.writers[0], w.create(a), under(key, naming.KeyScope{})); sub != want {
					w.Errorf("key %q: %+v, want %+v", key, sub, want)
				}
			}
		}
		if _, err := resetting(w, "goal"); err != nil {
			w.Errorf("reset a goal whose run is gone: %v", err)
		}
		for _, key := range []string{"goal", "undone", "short", "active"} {
			t := w.create(a)
			if sub := w.submit(a.writers[0], t, under(key, naming.KeyScope{})); sub.Exists {
				w.Errorf("key %q: %+v, want a new run", key, sub)
			}
		}
	}},
	{name: "goals/of many submissions and resets one run is open", why: "a reset and a submission at the same time come one after the other (S99, I11, T27)", run: func(w *world) {
		const engines, rounds = 6, 12
		n := under("k", naming.KeyScope{})
		var (
			all    sync.WaitGroup
			mu     sync.Mutex
			landed int
			resets int
		)
		for i := range engines {
			s := w.Store
			if i%2 == 1 {
				s = w.Other
			}
			a := w.join(s, 1)
			var tries []store.Transition
			for range rounds {
				tries = append(tries, w.create(a))
			}
			all.Go(func() {
				for _, t := range tries {
					sub, err := Submit(w.ctx, a.writers[0], t, n)
					if err != nil {
						w.Errorf("submit: %v", err)
						return
					}
					if !sub.Exists {
						mu.Lock()
						landed++
						mu.Unlock()
						if _, err := a.writers[0].Commit(w.ctx, []store.Transition{end(t.Run, 1, status.RunSucceeded)}); err != nil {
							w.Errorf("end: %v", err)
						}
					}
					_, err = resetting(w, "k")
					mu.Lock()
					if err == nil {
						resets++
					} else if !errors.Is(err, goals.ErrOpen) && !errors.Is(err, goals.ErrNotReached) {
						w.Errorf("reset: %v", err)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		g, err := goals.Find(w.ctx, w.Store, flowName, "k")
		if err != nil || g.Resets != resets || resets == 0 || landed != resets && landed != resets+1 {
			w.Errorf("%d runs took the key after %d resets: %+v, err = %v", landed, resets, g, err)
		}
	}},
}
