package storetest

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// familyRules are the rules about parents and their child runs.
var familyRules = []rule{
	{name: "children/a parent lists its children, page by page", why: "a parent may have thousands of children, and its view must not read all runs", run: func(w *world) {
		a := w.join(w.Store, 1)
		parent, other := w.create(a), w.create(a)
		w.land(a.writers[0], parent)
		w.land(a.writers[0], other)
		var want []status.RunID
		for _, name := range []string{"p.a", "p.b", "p.c"} {
			want = append(want, w.child(a, parent.Run, name, ""))
		}
		w.child(a, other.Run, "o.a", "")
		var got []status.RunID
		for after := status.RunID(0); ; after = got[len(got)-1] {
			page, err := w.Other.Runs(w.ctx, store.RunFilter{Parent: parent.Run, After: after, Limit: 2})
			if err != nil || len(page) > 2 {
				w.Fatalf("%d runs, err = %v, want at most 2", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				got = append(got, r.Run)
			}
		}
		if !slices.Equal(got, want) {
			w.Errorf("children %v, want %v", got, want)
		}
	}},
	{name: "children/each list names the parent of a run", why: "a list of the runs that need a person goes up from a child to its parents", run: func(w *world) {
		a := w.join(w.Store, 1)
		parent := w.create(a)
		w.land(a.writers[0], parent)
		child := w.child(a, parent.Run, "p.a", "k")
		for name, f := range map[string]store.RunFilter{
			"by state":  {States: []status.RunState{status.RunRunning, status.RunQueued}},
			"all":       {Limit: 10},
			"by key":    {Key: "k"},
			"by ids":    {IDs: []status.RunID{parent.Run, child}},
			"by name":   {Name: "p.a"},
			"by parent": {Parent: parent.Run},
		} {
			rows, err := w.Other.Runs(w.ctx, f)
			if err != nil || len(rows) == 0 {
				w.Errorf("%s: %d runs, err = %v", name, len(rows), err)
			}
			for _, r := range rows {
				if want := map[status.RunID]status.RunID{child: parent.Run}[r.Run]; r.Parent != want {
					w.Errorf("%s: run %d has the parent %d, want %d", name, r.Run, r.Parent, want)
				}
			}
		}
	}},
	{name: "children/every way to submit keeps the parent", why: "a store has several ways to write a batch, and a child that lost its parent is never undone with it", run: func(w *world) {
		a := w.join(w.Store, 1)
		parent := w.create(a)
		w.land(a.writers[0], parent)
		w.submit(a.writers[0], w.create(a), naming.Names{Name: "taken", Workflow: flowName, Key: "taken"})
		named := func(name, key string, parent status.RunID) store.Transition {
			t := w.create(a)
			t.Names = &naming.Names{Name: name, Workflow: flowName, Key: key, Parent: parent}
			return t
		}
		listed := named("listed", "", parent.Run)
		listed.NewNodes = []store.NodeName{{Node: 3, Step: 2, Name: "ship[1]"}}
		var want []status.RunID
		for _, batch := range [][]store.Transition{
			{named("a", "", parent.Run), named("alone", "", 0)},
			{named("b", "k", parent.Run)},
			{named("taken", "", parent.Run), named("c", "", parent.Run)}, // the first transition has the name of another run
			{listed},
		} {
			slices.SortFunc(batch, func(x, y store.Transition) int { return int(x.Run - y.Run) })
			for i, o := range w.commit(a.writers[0], batch...) {
				if n := batch[i].Names; o.Landed == (n.Name == "taken") {
					w.Errorf("%s: %+v", n.Name, o)
				} else if o.Landed && n.Parent != 0 {
					want = append(want, batch[i].Run)
				}
			}
		}
		slices.Sort(want)
		if got, err := IDs(w.Store.Runs(w.ctx, store.RunFilter{Parent: parent.Run})); err != nil || !slices.Equal(got, want) {
			w.Errorf("children %v, err = %v, want %v", got, err, want)
		}
	}},
	{name: "children/runs are found by their ids", why: "an engine that waits for many children asks for all of them at once", run: func(w *world) {
		a := w.join(w.Store, 1)
		runs := w.started(a, 3)
		w.land(a.writers[0], end(runs[1], 1, status.RunSucceeded))
		ids := []status.RunID{runs[2], runs[1], runs[2] + 1_000_000}
		got, err := w.Other.Runs(w.ctx, store.RunFilter{IDs: ids})
		if err != nil || len(got) != 2 || got[0].Run != runs[1] || got[0].State != status.RunSucceeded || got[1].Run != runs[2] || got[1].State.Final() {
			w.Errorf("got %+v, err = %v, want the ended run and the open one", got, err)
		}
		for name, f := range map[string]store.RunFilter{
			"ids and a state":      {IDs: ids, States: []status.RunState{status.RunRunning}},
			"ids and a page":       {IDs: ids, After: 1},
			"ids and a parent":     {IDs: ids, Parent: 1},
			"a parent and a name":  {Parent: 1, Name: "n"},
			"a parent and a state": {Parent: 1, States: []status.RunState{status.RunRunning}},
			"too many ids":         {IDs: make([]status.RunID, 1001)},
		} {
			if got, err := w.Store.Runs(w.ctx, f); err == nil {
				w.Errorf("%s: %d runs, want a refusal", name, len(got))
			}
		}
	}},
	{name: "children/a child stays while its parent exists", need: retains, why: "the parent may still undo the child, and its view shows it", run: func(w *world) {
		a := w.join(w.Store, 1)
		parent := w.whole(a, "p", "")
		child := w.child(a, parent, "p.c", "")
		grandchild := w.child(a, child, "p.c.g", "")
		w.land(a.writers[0], end(child, 1, status.RunSucceeded))
		w.land(a.writers[0], end(grandchild, 1, status.RunSucceeded))
		w.forgets(w.Store, base.Add(time.Hour), 0, 3)
		w.land(a.writers[0], end(parent, 2, status.RunSucceeded))
		// A store may remove a child in the same call of Retain as its parent, or in a later call.
		for range 3 {
			if _, err := w.Store.Store.(store.Retainer).Retain(w.ctx, base.Add(time.Hour), 1000); err != nil {
				w.Fatal(err)
			}
		}
		w.gone(parent, "p")
		w.gone(child, "p.c")
		w.gone(grandchild, "p.c.g")
	}},
}

// child submits a child run of the given parent, and returns its id.
func (w aged) child(a actor, parent status.RunID, name, key string) status.RunID {
	w.Helper()
	t := w.create(a)
	if sub := w.submit(a.writers[0], t, naming.Names{Name: name, Workflow: flowName, Key: key, Parent: parent}); sub.Exists {
		w.Fatalf("submit %s: it exists", name)
	}
	return t.Run
}
