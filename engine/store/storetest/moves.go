package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// moveRules are the rules for runs that were moved to another definition (engine migrate).
var moveRules = []rule{
	{name: "moves/lists show the definition that a run has now", why: "engine doctor looks for the agents of open runs, and must not look for those that only the first definition of a run needs", run: func(w *world) {
		a := w.join(w.Store, 1)
		second, third := w.version("d2"), w.version("d3")
		plain, moved := w.create(a), w.named(a, "moved", "k")
		w.land(a.writers[0], plain, moved)
		w.wantDefinition(moved.Run, digest, 0)
		t := next(moved.Run, 1)
		t.Moved, t.Alerts = second, []store.Alert{{Kind: "parked"}}
		w.land(a.writers[0], next(plain.Run, 1), t)
		w.wantDefinition(moved.Run, "d2", second)
		w.wantDefinition(plain.Run, digest, 0)
		if alerts, err := w.Other.Alerts(w.ctx, moved.Run, 10); hasViews(w.Harness) && (err != nil || len(alerts) != 1) {
			w.Errorf("alerts = %+v, err = %v, want the one alert of the row", alerts, err)
		}
		// The second move replaces the first one, even if the writer sends the transition twice
		// because the first reply is lost.
		w.Lose(w.T, true)
		u := next(moved.Run, 2)
		u.Moved = third
		w.land(a.writers[0], next(plain.Run, 2), u)
		w.wantDefinition(moved.Run, "d3", third)
		w.land(a.writers[0], end(plain.Run, 3, status.RunSucceeded), end(moved.Run, 3, status.RunSucceeded))
		w.wantDefinition(moved.Run, "d3", third)
		w.wantDefinition(plain.Run, digest, 0)
	}},
	{name: "moves/together with a message", why: "the verb of a person moves the run, so the row consumes a message", run: func(w *world) {
		a := w.join(w.Store, 1)
		second := w.version("d2")
		id := w.started(a, 1)[0]
		m, err := w.Store.Post(w.ctx, store.Message{Run: id, Kind: store.MessageVerb, By: "p", Data: []byte("x")})
		if err != nil {
			w.Fatal(err)
		}
		t := next(id, 1)
		t.Moved, t.Consumed, t.Heard = second, []store.MessageID{m}, ptr(int32(1))
		w.land(a.writers[0], t)
		w.wantDefinition(id, "d2", second)
	}},
	{name: "moves/a stale row moves nothing", why: "what was not committed must not show", run: func(w *world) {
		a := w.join(w.Store, 1)
		second := w.version("d2")
		id := w.started(a, 1)[0]
		w.land(a.writers[0], next(id, 1))
		t := next(id, 1)
		t.Moved = second
		if out := w.commit(a.writers[0], t); !errors.Is(out[0].Err, store.ErrStale) {
			w.Fatalf("outcome = %+v, want ErrStale", out[0])
		}
		w.wantDefinition(id, digest, 0)
	}},
	{name: "moves/only to a workflow that is stored", why: "a run without a definition would be missing from every list", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 3)
		first := w.create(a)
		first.Moved = w.flow
		for i, to := range []store.WorkflowID{-1, 1 << 30} {
			t := next(ids[i], 1)
			t.Moved = to
			out := w.commit(a.writers[0], t, next(ids[2], int32(i+1)))
			if out[0].Landed || out[0].Err == nil || !out[1].Landed {
				w.Errorf("workflow %d: outcomes = %+v, want only the move refused", to, out)
			}
			w.wantDefinition(ids[i], digest, 0)
		}
		if out := w.commit(a.writers[0], first); out[0].Landed || out[0].Err == nil {
			w.Errorf("the first row of a run moves it: %+v", out[0])
		}
	}},
	{name: "moves/retention follows the definition that a run has now", need: retains, why: "a person who gives a workflow another retention and moves a run to it expects the run to be kept that long", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := time.Now()
		kept := map[time.Duration]store.WorkflowID{0: w.version("d2")}
		for _, d := range []time.Duration{time.Hour, 48 * time.Hour} {
			ids, err := w.Store.PutDefinition(w.ctx, store.Definition{Digest: d.String(), Data: []byte("kept"), Workflows: []store.DefinedWorkflow{{Name: flowName, Retention: d}}})
			if err != nil {
				w.Fatal(err)
			}
			kept[d] = ids[flowName]
		}
		// The function `ended` makes a run that ended 2 hours ago, and returns its id. Before its
		// end, the run was moved to the workflows in the parameter `to`, one after the other.
		ended := func(first store.WorkflowID, to ...store.WorkflowID) status.RunID {
			c := w.create(a)
			c.At, c.Workflow = now.Add(-72*time.Hour), first
			w.land(a.writers[0], c)
			for i, flow := range append(to, 0) {
				t := next(c.Run, int32(i+1))
				if t.Moved = flow; flow == 0 {
					t = end(c.Run, int32(i+1), status.RunSucceeded)
				}
				t.At = now.Add(-2 * time.Hour)
				w.land(a.writers[0], t)
			}
			return c.Run
		}
		none, short, long := kept[0], kept[time.Hour], kept[48*time.Hour]
		shorter, toNone, back := ended(long, short), ended(long, none), ended(short, long, short)
		longer, fromNone, fromShort := ended(short, long), ended(none, long), ended(short, none)
		w.forgets(w.Store, time.Time{}, 2, 4) // the engine keeps runs for ever
		w.gone(shorter, "shorter")
		w.gone(back, "back")
		for _, run := range []status.RunID{toNone, longer, fromNone, fromShort} {
			w.load(run)
		}
		w.forgets(w.Other, now.Add(-90*time.Minute), 2, 2) // the engine keeps runs for 90 minutes
		w.gone(toNone, "to none")
		w.gone(fromShort, "from short")
		w.load(longer)
		w.load(fromNone)
	}},
	{name: "moves/are removed with their run", need: retains, why: "a row that retention forgets stays for ever", run: func(w *world) {
		a := w.join(w.Store, 1)
		second := w.version("d2")
		removed := func(to store.WorkflowID) int {
			id := w.started(a, 1)[0]
			t := next(id, 1)
			t.Moved = to
			w.land(a.writers[0], t)
			w.land(a.writers[0], end(id, 2, status.RunSucceeded))
			s, err := w.Harness.Store.(store.Retainer).Retain(w.ctx, base.Add(time.Hour), 1000)
			if err != nil || s.Runs != 1 {
				w.Fatalf("retain: %+v, err = %v, want one run to go", s, err)
			}
			w.gone(id, fmt.Sprint(id))
			return s.Rows
		}
		if plain, moved := removed(0), removed(second); moved != plain+1 {
			w.Errorf("%d rows of a moved run and %d of another one were removed, want one more", moved, plain)
		}
	}},
}

// version stores another definition of the workflow of the tests, and returns the id of the
// workflow.
func (w *frame) version(digest string) store.WorkflowID {
	w.Helper()
	ids, err := w.Store.PutDefinition(w.ctx, store.Definition{Digest: digest, Data: []byte(digest), Workflows: []store.DefinedWorkflow{{Name: "first"}, {Name: flowName, Steps: stepNames}}})
	if err != nil {
		w.Fatal(err)
	}
	return ids[flowName]
}

// wantDefinition checks which definition the lists show for a run of the workflow flowName. It also
// checks that the head of the run keeps the first workflow. The parameter `moved` is RunRow.Moved.
func (w *frame) wantDefinition(id status.RunID, want string, moved store.WorkflowID) {
	w.Helper()
	head, _ := w.load(id)
	open := []status.RunState{status.RunRunning, status.RunParked}
	if head.State.Final() {
		open = []status.RunState{head.State}
	}
	for name, f := range map[string]store.RunFilter{
		"name":     {Name: head.Name},
		"id":       {Name: fmt.Sprint(id)},
		"ids":      {IDs: []status.RunID{id}},
		"all":      {},
		"state":    {States: open},
		"digest":   {Digest: want},
		"together": {States: open, Digest: want, Workflow: flowName},
	} {
		rows, err := w.Other.Runs(w.ctx, f)
		i := slices.IndexFunc(rows, func(r store.RunRow) bool { return r.Run == id })
		if err != nil || i < 0 {
			w.Errorf("by %s: run %d is missing, err = %v", name, id, err)
			continue
		}
		if r := rows[i]; r.Digest != want || r.Moved != moved || r.WorkflowName != flowName || r.Workflow != w.flow {
			w.Errorf("by %s: digest %q, moved to %d, workflow %q (%d), want %q, %d, %q (%d)",
				name, r.Digest, r.Moved, r.WorkflowName, r.Workflow, want, moved, flowName, w.flow)
		}
		if r := rows[i]; r.Key != "" {
			byKey, err := w.Other.Runs(w.ctx, store.RunFilter{Key: r.Key, Digest: want})
			if err != nil || len(byKey) != 1 || byKey[0].Moved != moved {
				w.Errorf("by key: %+v, err = %v", byKey, err)
			}
		}
	}
	for _, other := range []string{digest, "d2", "d3"} {
		if other == want {
			continue
		}
		for _, states := range [][]status.RunState{nil, open} {
			rows, err := w.Other.Runs(w.ctx, store.RunFilter{Digest: other, States: states})
			if err != nil || slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Run == id }) {
				w.Errorf("run %d is in the list of definition %s, err = %v", id, other, err)
			}
		}
	}
	if head.Workflow != w.flow {
		w.Errorf("the head has workflow %d, want the first one, %d", head.Workflow, w.flow)
	}
}
