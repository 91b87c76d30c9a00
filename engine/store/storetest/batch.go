package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

var batchRules = []rule{
	{name: "batch/submissions land beside other transitions", why: "one commit for all runs of an engine: what begins a run costs no commit of its own", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		named, keyed, derived, unnamed := w.named(a, "order-1", ""), w.named(a, "order-2", "k2"), w.named(a, "", "k3"), w.named(a, "", "")
		batch := []store.Transition{next(ids[0], 1), end(ids[1], 1, status.RunSucceeded), named, keyed, derived, unnamed, w.create(a)}
		out := w.commit(a.writers[0], batch...)
		names := []string{2: "order-1", 3: "order-2", 4: naming.RunName(derived.Run), 5: naming.RunName(unnamed.Run), 6: ""}
		for i, o := range out {
			if !o.Landed || o.Err != nil {
				w.Errorf("transition %d: outcome = %+v, want landed", i, o)
			}
			if i < 2 || i == 6 {
				continue
			}
			if want := (store.Submitted{Run: batch[i].Run, Name: names[i]}); o.Submitted != want {
				w.Errorf("transition %d: submitted = %+v, want %+v", i, o.Submitted, want)
			}
			r, err := w.Other.Find(w.ctx, names[i])
			if err != nil || r.Run != batch[i].Run || r.Key != batch[i].Names.Key || r.Name != names[i] || r.Owner != a.id {
				w.Errorf("find %q = %+v, err = %v", names[i], r, err)
			}
			w.wantRows(batch[i].Run, 1)
		}
		w.wantRows(ids[0], 2)
	}},
	{name: "batch/what is in dispute does not harm its neighbours", why: "a name or key that is taken is answered with the earlier run, and nothing of the later one is written; the others of the batch land as if it were not there (I1, I11)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		byName, byKey := w.named(b, "taken", "k-name"), w.named(b, "other", "taken")
		w.land(b.writers[0], byName, byKey)
		id := w.started(a, 1)[0]
		batch := []store.Transition{next(id, 1), w.named(a, "taken", "free-1"), w.named(a, "new", "free-2"), w.named(a, "new-2", "taken"), w.named(a, "new-3", "")}
		out := w.commit(a.writers[0], batch...)
		for _, i := range []int{0, 2, 4} {
			if !out[i].Landed || out[i].Err != nil || i > 0 && (out[i].Submitted.Exists || out[i].Submitted.Run != batch[i].Run) {
				w.Errorf("transition %d: outcome = %+v, want landed", i, out[i])
			}
			w.wantRows(batch[i].Run, 1+b2i(i == 0))
		}
		for i, earlier := range map[int]store.Transition{1: byName, 3: byKey} {
			want := store.Submitted{Run: earlier.Run, Name: earlier.Names.Name, Exists: true}
			if out[i].Landed || out[i].Err != nil || out[i].Submitted != want {
				w.Errorf("transition %d: outcome = %+v, want the earlier run %+v", i, out[i], want)
			}
		}
		w.wantNothing(batch[1].Run, "free-1")
		if _, err := w.Other.Find(w.ctx, "new-2"); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("find the name of what was refused: err = %v, want ErrNotFound", err)
		}
		// The name and the key of the refused submission are still free.
		w.land(a.writers[0], w.named(a, "new-2", "free-1"))
	}},
	{name: "batch/a key is taken over from a run that freed it", why: "failed, compensated and cancelled runs are done with: the same order may be tried again", run: func(w *world) {
		a := w.join(w.Store, 1)
		var batch []store.Transition
		want := make(map[status.RunID]status.RunID) // for each refused submission, the earlier run that holds its key
		for n, s := range []status.RunState{status.RunFailed, status.RunCompensated, status.RunCancelled, status.RunSucceeded, status.RunParked, status.RunCompensating, 0} {
			first := w.named(a, "", fmt.Sprint("k", n))
			w.land(a.writers[0], first)
			if s != 0 {
				w.land(a.writers[0], end(first.Run, 1, s))
			}
			again := w.named(a, "", fmt.Sprint("k", n))
			batch = append(batch, again)
			if storekit.HoldsKey(s) {
				want[again.Run] = first.Run
			}
		}
		for i, o := range w.commit(a.writers[0], batch...) {
			held, exists := want[batch[i].Run]
			if !exists {
				held = batch[i].Run
			}
			if o.Landed == exists || o.Err != nil || o.Submitted.Exists != exists || o.Submitted.Run != held {
				w.Errorf("key %s: outcome = %+v, want run %d, exists = %v", batch[i].Names.Key, o, held, exists)
			}
			if rs, err := w.Other.Runs(w.ctx, store.RunFilter{Key: batch[i].Names.Key}); err != nil || len(rs) != 2-b2i(exists) {
				w.Errorf("key %s: runs = %+v, err = %v", batch[i].Names.Key, rs, err)
			}
		}
	}},
	{name: "batch/the same name or key twice is one run", why: "two who submit the same thing at once may meet in one batch (S55, I11)", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		batch := []store.Transition{next(id, 1),
			w.named(a, "n", ""), w.named(a, "n", ""), w.named(a, "x", "k"), w.named(a, "y", "k"), w.named(a, "n", "k"), w.named(a, "z", "k2")}
		out := w.commit(a.writers[0], batch...)
		for _, i := range []int{0, 1, 3, 6} {
			if !out[i].Landed || out[i].Err != nil {
				w.Errorf("transition %d: outcome = %+v, want landed", i, out[i])
			}
		}
		for i, first := range map[int]int{2: 1, 4: 3, 5: 1} {
			if o := out[i]; o.Landed || o.Err != nil || !o.Submitted.Exists || o.Submitted.Run != batch[first].Run {
				w.Errorf("transition %d: outcome = %+v, want run %d", i, o, batch[first].Run)
			}
			if _, _, err := store.LoadRun(w.ctx, w.Store, batch[i].Run); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("transition %d: err = %v, want ErrNotFound", i, err)
			}
		}
	}},
	{name: "batch/a collision of ids leaves no names", why: "a run id under a foreign token is another run: make a new id, and find the names free (S54)", run: func(w *world) {
		a := w.join(w.Store, 1)
		plain, named := w.create(a), w.named(a, "first", "k1")
		w.land(a.writers[0], plain, named)
		for round, taken := range []status.RunID{plain.Run, named.Run} {
			n := fmt.Sprint("n", round)
			c := w.named(a, n, n)
			c.Run = taken
			after := w.named(a, n+"-after", "")
			out := w.commit(a.writers[0], c, after)
			if out[0].Landed || !errors.Is(out[0].Err, store.ErrExists) || !out[1].Landed {
				w.Errorf("outcomes = %+v, want ErrExists, landed", out)
			}
			w.land(a.writers[0], w.named(a, n, n))
			w.wantRows(taken, 1)
		}
	}},
	{name: "batch/what is refused leaves nothing and harms nobody", why: "a refused submission leaves neither run nor names, and costs its neighbours nothing (I1, S54)", run: func(w *world) {
		a := w.join(w.Store, 1)
		for name, spoil := range map[string]func(*store.Transition){
			"illegal row":    func(t *store.Transition) { t.Steps = []store.StepRow{{State: status.StepRunning}} },
			"no such flow":   func(t *store.Transition) { t.Workflow = 9999 },
			"name too long":  func(t *store.Transition) { t.Names.Name = strings.Repeat("x", naming.MaxNameLen+1) },
			"key too long":   func(t *store.Transition) { t.Names.Key = strings.Repeat("k", naming.MaxKeyBytes+1) },
			"name not plain": func(t *store.Transition) { t.Names.Name = "n'; DROP TABLE run" },
			"key not text":   func(t *store.Transition) { t.Names.Key = "\xff" },
			"key of no flow": func(t *store.Transition) { t.Names.Workflow = "" },
			"not at seq 0":   func(t *store.Transition) { t.Seq = 1 },
			"without state":  func(t *store.Transition) { t.State = 0 },
			"without record": func(t *store.Transition) { t.Data = nil },
		} {
			id := w.started(a, 1)[0]
			c := w.named(a, "n", "k")
			spoil(&c)
			after := w.named(a, "", "")
			out := w.commit(a.writers[0], next(id, 1), c, after)
			if !out[0].Landed || !out[2].Landed || out[2].Submitted.Run != after.Run {
				w.Errorf("%s: neighbours = %+v", name, out)
			}
			if out[1].Landed || out[1].Err == nil || errors.Is(out[1].Err, store.ErrStale) || errors.Is(out[1].Err, store.ErrExists) {
				w.Errorf("%s: outcome = %+v, want a refusal", name, out[1])
			}
			w.wantNothing(c.Run, "k")
		}
		w.land(a.writers[0], w.named(a, "n", "k"))
	}},
	{name: "batch/a lost answer is landed, once", why: "an accepted run is never lost and never doubled, and does not report itself as an earlier run (I1)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		w.land(b.writers[0], w.named(b, "taken", "taken"))
		for i, landed := range []bool{true, false} {
			n := fmt.Sprint("n", i)
			ids := w.started(a, 2)
			w.land(b.writers[0], next(ids[1], 1))
			batch := []store.Transition{next(ids[0], 1), next(ids[1], 1), w.named(a, n, n), w.named(a, n+"-2", ""), w.named(a, "taken", n+"-3"), w.named(a, n+"-4", "taken")}
			w.Lose(w.T, landed)
			out := w.commit(a.writers[0], batch...)
			if !errors.Is(out[1].Err, store.ErrStale) {
				w.Errorf("lost after landing = %v: outcome of a stale row = %+v", landed, out[1])
			}
			for _, k := range []int{0, 2, 3} {
				if !out[k].Landed || out[k].Submitted.Exists {
					w.Errorf("lost after landing = %v: transition %d: outcome = %+v, want landed", landed, k, out[k])
				}
				w.wantRows(batch[k].Run, 1+b2i(k == 0))
			}
			for _, k := range []int{4, 5} {
				if out[k].Landed || out[k].Err != nil || !out[k].Submitted.Exists || out[k].Submitted.Name != "taken" {
					w.Errorf("lost after landing = %v: transition %d: outcome = %+v, want the earlier run", landed, k, out[k])
				}
				if _, _, err := store.LoadRun(w.ctx, w.Other, batch[k].Run); !errors.Is(err, store.ErrNotFound) {
					w.Errorf("lost after landing = %v: transition %d: err = %v, want ErrNotFound", landed, k, err)
				}
			}
			// Send another batch, in which no transition is refused.
			batch = []store.Transition{next(ids[0], 2), w.named(a, n+"-5", n+"-5"), w.named(a, n+"-6", n+"-6")}
			w.Lose(w.T, landed)
			for k, o := range w.commit(a.writers[0], batch...) {
				if !o.Landed || o.Err != nil || o.Submitted.Exists {
					w.Errorf("lost after landing = %v: transition %d: outcome = %+v, want landed", landed, k, o)
				}
				w.wantRows(batch[k].Run, 1+2*b2i(k == 0))
			}
		}
	}},
	{name: "batch/of a fenced engine nothing lands", why: "survivors have read what there is: a submission that was not kept by then was promised to nobody (I1, I3)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Store, 1)
		w.bury(a)
		c := w.named(a, "n", "k")
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{c, w.create(a)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("outcomes = %+v, err = %v, want ErrFenced", out, err)
		}
		w.wantNothing(c.Run, "k")
		d := w.named(b, "n", "k")
		w.LoseFenced(w.T, b.id, false)
		if out, err := b.writers[0].Commit(w.ctx, []store.Transition{d, w.create(b)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("fenced before it landed: outcomes = %+v, err = %v, want ErrFenced", out, err)
		}
		w.wantNothing(d.Run, "k")
		e := w.join(w.Store, 1)
		f := w.named(e, "n", "k")
		w.LoseFenced(w.T, e.id, true)
		out, err := e.writers[0].Commit(w.ctx, []store.Transition{f, w.create(e)})
		if err != nil || !out[0].Landed || !out[1].Landed || out[0].Submitted.Run != f.Run || out[0].Submitted.Exists {
			w.Errorf("fenced after it landed: outcomes = %+v, err = %v, want landed", out, err)
		}
		w.wantRows(f.Run, 1)
	}},
	{name: "batch/of many at once exactly one lands", why: "uniqueness is a row with a unique index, never check-then-insert, and batches that want the same names must not block each other (S55, I11)", run: func(w *world) {
		const callers, rounds, names = 4, 8, 6
		var actors []actor
		for i := range callers {
			actors = append(actors, w.join([]store.Store{w.Store, w.Other}[i%2], 1))
		}
		for round := range rounds {
			var wg sync.WaitGroup
			got := make([][]store.Outcome, callers)
			batches := make([][]store.Transition, callers)
			for i := range callers {
				for n := range names { // each caller adds the names in another order
					n = (n*(1+4*(i%2)) + i) % names
					if n%2 == 0 {
						batches[i] = append(batches[i], w.named(actors[i], fmt.Sprintf("name-%d-%d", round, n), ""))
					} else {
						batches[i] = append(batches[i], w.named(actors[i], "", fmt.Sprintf("key-%d", n)))
					}
				}
				batches[i] = append(batches[i], w.create(actors[i]))
			}
			for i, a := range actors {
				wg.Go(func() {
					var err error
					if got[i], err = a.writers[0].Commit(w.ctx, batches[i]); err != nil {
						w.Errorf("caller %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			landed := make(map[naming.Names][]status.RunID)
			seen := make(map[naming.Names]status.RunID)
			for i := range callers {
				if len(got[i]) != names+1 {
					w.Fatalf("round %d: caller %d got %d outcomes", round, i, len(got[i]))
				}
				for n, o := range got[i] {
					t := batches[i][n]
					if o.Err != nil {
						w.Fatalf("round %d: caller %d: run %d: %v", round, i, t.Run, o.Err)
					}
					if t.Names == nil {
						if !o.Landed {
							w.Errorf("round %d: caller %d: the run without names did not land", round, i)
						}
						continue
					}
					id := *t.Names
					if o.Landed {
						landed[id] = append(landed[id], t.Run)
					}
					if seen[id] != 0 && seen[id] != o.Submitted.Run || o.Submitted.Run == 0 || o.Landed == o.Submitted.Exists {
						w.Errorf("round %d: %+v: outcome = %+v, others got run %d", round, id, o, seen[id])
					}
					seen[id] = o.Submitted.Run
				}
			}
			var freed []store.Transition
			for id, run := range seen {
				if len(landed[id]) != 1 {
					w.Errorf("round %d: %+v: landed = %v, want one", round, id, landed[id])
				}
				w.wantRows(run, 1)
				if id.Key != "" { // free the key, so that the callers of the next round compete for it
					freed = append(freed, end(run, 1, status.RunCancelled))
				}
			}
			w.land(actors[0].writers[0], sorted(freed)...)
		}
	}},
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
