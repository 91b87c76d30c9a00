package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// heirRules are the rules about runs that take over the results of ended runs (naming.Heirs).
var heirRules = []rule{
	{name: "heirs/a run has one heir", why: "two heirs would undo the same effects twice", run: func(w *world) {
		a := w.join(w.Store, 1)
		old := w.succeeded(a, naming.Names{})
		first, second := w.heir(a, old, naming.Names{Name: "first"}), w.heir(a, old, naming.Names{})
		if sub := w.submit(a.writers[0], first, *first.Names); sub.Exists || sub.Run != first.Run {
			w.Fatalf("submitted %+v", sub)
		}
		w.refusesHeir(a, second, first.Run)
		if _, _, err := store.LoadRun(w.ctx, w.Store, second.Run); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("refused run: err = %v, want ErrNotFound", err)
		}
		w.land(a.writers[0], end(first.Run, 1, status.RunCompensated))
		// A run keeps its heir, even if the heir has undone the effects.
		w.refusesHeir(a, w.heir(a, old, naming.Names{Name: "third"}), first.Run)
		again := w.heir(a, old, naming.Names{Name: "first"})
		if sub := w.submit(a.writers[0], again, *again.Names); !sub.Exists || sub.Run != first.Run {
			w.Errorf("a restart under the name of the heir: %+v", sub)
		}
	}},
	{name: "heirs/an open run and a missing one have none", why: "the effects of an open run are its own", run: func(w *world) {
		a := w.join(w.Store, 1)
		open := w.create(a)
		w.land(a.writers[0], open)
		for _, from := range []status.RunID{open.Run, open.Run + 1_000_000} {
			t := w.heir(a, from, naming.Names{Name: "heir"})
			out, err := a.writers[0].Commit(w.ctx, []store.Transition{t})
			if err != nil || out[0].Landed || !errors.Is(out[0].Err, naming.ErrNoOrigin) {
				w.Errorf("heir of run %d: %+v, err = %v, want ErrNoOrigin", from, out, err)
			}
		}
	}},
	{name: "heirs/the heir takes the key of its run", why: "a run that has succeeded holds its key, and the new run is its continuation", run: func(w *world) {
		a := w.join(w.Store, 1)
		names := naming.Names{Workflow: flowName, Key: "order-1"}
		old := w.succeeded(a, names)
		t := w.heir(a, old, names)
		if sub := w.submit(a.writers[0], t, *t.Names); sub.Exists || sub.Run != t.Run {
			w.Fatalf("submitted %+v", sub)
		}
		other := w.create(a)
		if sub := w.submit(a.writers[0], other, names); !sub.Exists || sub.Run != t.Run {
			w.Errorf("the key belongs to %+v, want the heir", sub)
		}
	}},
	{name: "heirs/of many restarts at once one wins", why: "two people may restart a run in the same moment", run: func(w *world) {
		actors := []actor{w.join(w.Store, 1), w.join(w.Other, 1)}
		for range 5 {
			old := w.succeeded(actors[0], naming.Names{})
			ts := []store.Transition{w.heir(actors[0], old, naming.Names{}), w.heir(actors[1], old, naming.Names{})}
			outs := make([]store.Outcome, len(ts))
			var both sync.WaitGroup
			for i, a := range actors {
				both.Go(func() {
					out, err := a.writers[0].Commit(w.ctx, []store.Transition{ts[i]})
					if err != nil {
						w.Error(err)
						return
					}
					outs[i] = out[0]
				})
			}
			both.Wait()
			if outs[0].Landed == outs[1].Landed {
				w.Fatalf("outcomes %+v, want one winner", outs)
			}
			winner := ts[0].Run
			if outs[1].Landed {
				winner = ts[1].Run
			}
			w.wantHeir(old, winner)
		}
	}},
	{name: "heirs/the heir is known as long as the old run", need: retains, why: "if the heir was forgotten, a second heir would undo its effects again", run: func(w *world) {
		a := w.join(w.Store, 1)
		old := w.succeeded(a, naming.Names{Name: "old"})
		t := w.heir(a, old, naming.Names{Name: "new"})
		w.submit(a.writers[0], t, *t.Names)
		w.land(a.writers[0], end(t.Run, 1, status.RunSucceeded))
		w.wantHeir(old, t.Run)
		for range 3 {
			if _, err := w.Store.Store.(store.Retainer).Retain(w.ctx, base.Add(time.Hour), 1000); err != nil {
				w.Fatal(err)
			}
		}
		w.wantHeir(old, 0)
	}},
}

// succeeded submits a run, ends it as succeeded, and returns its id.
func (w *world) succeeded(a actor, names naming.Names) status.RunID {
	w.Helper()
	t := w.create(a)
	w.submit(a.writers[0], t, names)
	w.land(a.writers[0], end(t.Run, 1, status.RunSucceeded))
	return t.Run
}

// heir returns the submission of a run that takes over the results of another run.
func (w *world) heir(a actor, from status.RunID, names naming.Names) store.Transition {
	t := w.create(a)
	names.From = from
	t.Names = &names
	return t
}

func (w *world) refusesHeir(a actor, t store.Transition, heir status.RunID) {
	w.Helper()
	out, err := a.writers[0].Commit(w.ctx, []store.Transition{t})
	var refused *naming.HeirError
	if err != nil || out[0].Landed || !errors.As(out[0].Err, &refused) || refused.Heir != heir {
		w.Errorf("%+v, err = %v, want a refusal that names run %d", out, err, heir)
	}
	w.wantHeir(t.Names.From, heir)
}

func (w *world) wantHeir(run, want status.RunID) {
	w.Helper()
	role, ok := w.Store.Store.(naming.Heirs)
	if !ok { // the role is optional: without it, only the refusals of commits are checked
		return
	}
	if got, err := role.Heir(w.ctx, run); err != nil || got != want {
		w.Errorf("heir = %d, err = %v, want %d", got, err, want)
	}
}
