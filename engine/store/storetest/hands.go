package storetest

import (
	"errors"
	"maps"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

var handRules = []rule{
	{name: "hands/a death counts once against each open run in hand", why: "the next engine must know which run may have ended the last one, and no other run", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		runs := w.started(a, 4)
		w.land(a.writers[0], end(runs[3], 1, status.RunSucceeded))
		w.putInHand(a, runs[0])
		// The call replaces the list of the engine `a`. The list contains a run that does not
		// exist: no run has the id 1<<50.
		w.putInHand(a, runs[1], runs[1], runs[2], runs[3], 1<<50)
		w.wantSuspects(runs, nil)
		w.bury(a)
		once := map[status.RunID]int{runs[1]: 1, runs[2]: 1}
		w.wantSuspects(runs, once)
		if _, err := w.Other.Fence(w.ctx, a.id); err != nil {
			w.Fatalf("fence again: %v", err)
		}
		w.wantSuspects(runs, once)
		w.putInHand(b, runs[2])
		w.bury(b)
		w.wantSuspects(runs, map[status.RunID]int{runs[1]: 1, runs[2]: 2})
		if err := w.Other.Absolve(w.ctx, runs[2], runs[0]); err != nil {
			w.Fatalf("absolve: %v", err)
		}
		w.wantSuspects(runs, map[status.RunID]int{runs[1]: 1})
	}},
	{name: "hands/an engine that leaves counts against nothing", why: "a deploy must not make runs suspect", run: func(w *world) {
		a := w.join(w.Store, 1)
		runs := w.started(a, 2)
		w.putInHand(a, runs...)
		if err := w.Store.Leave(w.ctx, a.id); err != nil {
			w.Fatalf("leave: %v", err)
		}
		w.wantSuspects(runs, nil)
		b := w.join(w.Store, 1)
		w.putInHand(b, runs...)
		w.putInHand(b)
		w.bury(b)
		w.wantSuspects(runs, nil)
	}},
	{name: "hands/others see what an engine has in hand", why: "until it is known whether the run ended that engine, no other may try it", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Store, 1)
		runs := w.started(a, 2)
		w.putInHand(b, runs[1])
		for _, c := range []struct {
			self store.EngineID
			want map[status.RunID]store.Suspicion
		}{{a.id, map[status.RunID]store.Suspicion{runs[1]: {InHand: true}}}, {b.id, nil}} {
			if got, err := w.Other.Suspects(w.ctx, c.self, runs); err != nil || !maps.Equal(got, c.want) {
				w.Errorf("Suspects for engine %d = %v, %v, want %v", c.self, got, err, c.want)
			}
		}
		w.bury(b)
		if got, err := w.Other.Suspects(w.ctx, a.id, runs); err != nil || !maps.Equal(got, map[status.RunID]store.Suspicion{runs[1]: {Deaths: 1}}) {
			w.Errorf("Suspects after the death = %v, %v", got, err)
		}
	}},
	{name: "hands/a dead engine has nothing in hand", why: "what counts against its runs has been counted", run: func(w *world) {
		a := w.join(w.Store, 1)
		runs := w.started(a, 1)
		w.bury(a)
		if err := w.Store.PutInHand(w.ctx, a.id, runs); !errors.Is(err, store.ErrFenced) {
			w.Errorf("Hold of a dead engine: %v, want ErrFenced", err)
		}
		if _, err := w.Store.Fence(w.ctx, a.id); err != nil {
			w.Fatalf("fence: %v", err)
		}
		w.wantSuspects(runs, nil)
	}},
	{name: "hands/after too many deaths nobody looks at a run at rest", why: "an answer that waits for it must not make the next engine touch what killed the others", run: func(w *world) {
		last := w.join(w.Store, 1)
		runs := w.started(last, 2)
		shunned, open := runs[0], runs[1]
		parked := next(shunned, 1)
		parked.State, parked.NextCheck = status.RunParked, store.Never
		w.land(last.writers[0], parked)
		for _, run := range runs {
			w.posted(run, 1)
		}
		for range store.MaxDeaths {
			a := w.join(w.Other, 1)
			w.putInHand(a, runs...)
			w.bury(a)
		}
		if tick := w.tick(last); !slices.Equal(tick.Inbox, []status.RunID{open}) {
			w.Errorf("the owner is shown messages for %v, want for %v only", tick.Inbox, open)
		}
		w.bury(last)
		lists := func(when string, wanted []status.RunID) {
			w.Helper()
			got := map[string]func() ([]status.RunID, error){
				"Orphans":   func() ([]status.RunID, error) { return IDs(w.Store.Runs(w.ctx, Orphans(0, 10))) },
				"Abandoned": func() ([]status.RunID, error) { return IDs(w.Store.Runs(w.ctx, Abandoned(0, 10))) },
				"Addressed": func() ([]status.RunID, error) { return IDs(w.Store.Runs(w.ctx, Addressed(10))) },
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				runs, err := got[name]()
				slices.Sort(runs)
				if err != nil || !slices.Equal(runs, wanted) {
					w.Errorf("%s: %s = %v, %v, want %v", when, name, runs, err, wanted)
				}
			}
		}
		lists("after the deaths", []status.RunID{open})
		if err := w.Store.Absolve(w.ctx, shunned); err != nil {
			w.Fatalf("absolve: %v", err)
		}
		lists("after a person spoke", runs)
	}},
}

// suspects has helpers for tests of store.Hands: they store which runs an engine has in
// hand, and check the counted deaths.
type suspects struct{ *frame }

// putInHand stores the given runs as the list of runs that an engine has in hand.
func (w suspects) putInHand(a actor, runs ...status.RunID) {
	w.Helper()
	if err := w.Store.PutInHand(w.ctx, a.id, runs); err != nil {
		w.Fatalf("hold: %v", err)
	}
}

// wantSuspects checks, for each run, the number of engines that died with the run in hand.
// The parameter `want` has no entry for a run without deaths.
func (w suspects) wantSuspects(runs []status.RunID, want map[status.RunID]int) {
	w.Helper()
	suspects, err := w.Other.Suspects(w.ctx, 0, runs)
	got := map[status.RunID]int{}
	for run, x := range suspects {
		if x.Deaths > 0 {
			got[run] = x.Deaths
		}
	}
	if err != nil || !maps.Equal(got, want) {
		w.Errorf("Suspects = %v, %v, want %v", got, err, want)
	}
}
