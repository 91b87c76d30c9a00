package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

var viewRules = []rule{
	{name: "list/runs by the kind of their start", why: "a person asks which runs events have started, and a store may have runs without names (S90)", run: func(w *world) {
		a := w.join(w.Store, 1)
		first := w.submit(a.writers[0], w.create(a), naming.Names{Workflow: flowName})
		all := []naming.Trigger{naming.ByHand, naming.ByEvent, naming.BySchedule, naming.BySelection, naming.BySubmission, naming.ByParent, naming.ByNotification}
		for _, t := range all {
			n := naming.Names{Name: "by-" + t.String(), Workflow: flowName, Trigger: t}
			switch t {
			case naming.ByParent:
				n.Parent = first.Run
			case naming.BySchedule:
				n.Key = "k"
			}
			w.submit(a.writers[0], w.create(a), n)
		}
		ask := func(f store.RunFilter, want ...string) {
			w.Helper()
			rows, err := w.Other.Runs(w.ctx, f)
			var got []string
			for _, r := range rows {
				name := r.Name
				if r.Run == first.Run {
					name = "first"
				} else if r.Name != "by-"+r.Trigger.String() {
					w.Errorf("run %s was started by %s", r.Name, r.Trigger)
				}
				got = append(got, name)
			}
			if err != nil || !slices.Equal(got, want) {
				w.Errorf("%+v: runs = %v, %v, want %v", f, got, err, want)
			}
		}
		ask(store.RunFilter{Triggers: []naming.Trigger{naming.ByHand}}, "by-manual", "first")
		ask(store.RunFilter{Triggers: []naming.Trigger{naming.ByEvent, naming.BySelection}}, "by-selection", "by-event")
		ask(store.RunFilter{Triggers: []naming.Trigger{naming.ByHand, naming.ByNotification}, States: []status.RunState{status.RunQueued, status.RunRunning}}, "by-notify", "by-manual", "first")
		ask(store.RunFilter{Triggers: []naming.Trigger{naming.ByParent}, Workflow: flowName}, "by-parent")
		ask(store.RunFilter{Triggers: []naming.Trigger{naming.BySchedule}, Key: "k"}, "by-schedule")
		ask(store.RunFilter{Triggers: []naming.Trigger{naming.ByEvent}, Key: "k"})
		n := naming.Names{Workflow: flowName, Trigger: naming.ByEvent}
		if _, err := Submit(w.ctx, a.writers[0], w.create(a), n); err == nil {
			w.Error("a run that an event has started needs a name")
		}
	}},
	{name: "view/every step shows from submission", need: hasViews, why: "the initial state of all steps is there before anything runs, without a journal byte (S9, S14)", run: func(w *world) {
		a := w.join(w.Store, 1)
		c := w.create(a)
		w.submit(a.writers[0], c, naming.Names{Workflow: flowName})
		var want []store.StepView
		for i, name := range stepNames {
			want = append(want, store.StepView{Name: name, StepRow: store.StepRow{Node: int32(i), State: status.StepPending}})
		}
		w.wantSteps(c.Run, want...)
	}},
	{name: "view/a step shows its last change", need: hasViews, why: "state, attempt, failure count, complete-by and who holds it, as it happens (S9, S10, S63)", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		by := base.Add(90 * time.Second)
		t := next(id, 1)
		t.Steps = []store.StepRow{{Node: 0, State: status.StepRunning, Attempt: 1, CompleteBy: by}}
		w.land(a.writers[0], t)
		w.wantSteps(id,
			store.StepView{Name: "reserve", LockedBy: a.id, StepRow: t.Steps[0]},
			store.StepView{Name: "charge", StepRow: store.StepRow{Node: 1, State: status.StepPending}},
			store.StepView{Name: "ship", StepRow: store.StepRow{Node: 2, State: status.StepPending}})
		t = next(id, 2)
		t.Steps = []store.StepRow{
			{Node: 0, State: status.StepBackoff, Attempt: 1, Failures: 1},
			{Node: 2, State: status.StepRunning, Attempt: 300, Failures: 299, CompleteBy: by},
			{Node: 0, State: status.StepSucceeded, Attempt: 2, Failures: 1},
		}
		w.land(a.writers[0], t)
		w.wantSteps(id,
			store.StepView{Name: "reserve", StepRow: store.StepRow{Node: 0, State: status.StepSucceeded, Attempt: 2, Failures: 1}},
			store.StepView{Name: "charge", StepRow: store.StepRow{Node: 1, State: status.StepPending}},
			store.StepView{Name: "ship", LockedBy: a.id, StepRow: store.StepRow{Node: 2, State: status.StepRunning, Attempt: 300, Failures: 255, CompleteBy: by}})
	}},
	{name: "view/a moved run shows its present steps", need: hasViews, why: "engine migrate renames steps and adds some; the last name of a node counts", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		t := next(id, 1)
		t.NewNodes = []store.NodeName{{Node: 0, Step: 0, Name: "book"}, {Node: 3, Step: 3, Name: "extra"}}
		w.land(a.writers[0], t)
		u := next(id, 2)
		u.NewNodes = []store.NodeName{{Node: 0, Step: 0, Name: "later"}, {Node: 3, Step: 3, Name: "more"}}
		w.land(a.writers[0], u)
		var want []store.StepView
		for i, name := range []string{"later", "charge", "ship", "more"} {
			want = append(want, store.StepView{Name: name, StepRow: store.StepRow{Node: int32(i), State: status.StepPending}})
		}
		w.wantSteps(id, want...)
	}},
	{name: "view/instances show from the record that adds them", need: hasViews, why: "a for_each has one row per instance (S14)", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		t := next(id, 1)
		for i := range 300 {
			t.NewNodes = append(t.NewNodes, store.NodeName{Node: int32(3 + i), Step: 1, Name: fmt.Sprintf("charge[%q]", fmt.Sprint(i))})
			t.Steps = append(t.Steps, store.StepRow{Node: int32(3 + i), State: status.StepHeld})
		}
		w.land(a.writers[0], t)
		u := next(id, 2)
		u.Steps = []store.StepRow{{Node: 302, State: status.StepSucceeded, Attempt: 1}}
		w.land(a.writers[0], u)
		got, err := w.Other.StepRows(w.ctx, id)
		if err != nil || len(got) != 303 {
			w.Fatalf("%d steps, err = %v, want 303", len(got), err)
		}
		for i, g := range got[3:302] {
			want := store.StepView{Name: fmt.Sprintf("charge[%q]", fmt.Sprint(i)), StepRow: store.StepRow{Node: int32(3 + i), State: status.StepHeld}}
			if g != want {
				w.Fatalf("step %d = %+v, want %+v", 3+i, g, want)
			}
		}
		if g := got[302]; g.State != status.StepSucceeded || g.Attempt != 1 {
			w.Errorf("last step = %+v", g)
		}
	}},
	{name: "view/a stale row adds nothing", need: hasViews, why: "what did not land must not show", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		w.land(a.writers[0], next(id, 1))
		t := next(id, 1)
		t.Steps = []store.StepRow{{Node: 0, State: status.StepSucceeded}}
		t.NewNodes = []store.NodeName{{Node: 3, Step: 1, Name: "x"}}
		t.Alerts = []store.Alert{{Kind: "parked"}}
		if out := w.commit(a.writers[0], t); !errors.Is(out[0].Err, store.ErrStale) {
			w.Fatalf("outcome = %+v, want ErrStale", out[0])
		}
		if got, err := w.Other.StepRows(w.ctx, id); err != nil || len(got) != 3 || got[0].State != status.StepPending {
			w.Errorf("steps = %+v, err = %v", got, err)
		}
		if got, err := w.Other.Alerts(w.ctx, 0, 10); err != nil || len(got) != 0 {
			w.Errorf("alerts = %+v, err = %v", got, err)
		}
	}},
	{name: "view/after a death the row stays", need: hasViews, why: "running, with its complete-by in the past, is the only failure signal (S58)", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := w.tick(a).Now
		id := w.started(a, 1)[0]
		t := next(id, 1)
		t.Steps = []store.StepRow{{Node: 0, State: status.StepRunning, Attempt: 1, CompleteBy: now.Add(-time.Minute)}}
		w.land(a.writers[0], t)
		w.bury(a)
		got, err := w.Other.StepRows(w.ctx, id)
		if err != nil || got[0].State != status.StepRunning || !got[0].CompleteBy.Equal(now.Add(-time.Minute)) || got[0].LockedBy != a.id {
			w.Errorf("steps = %+v, err = %v", got, err)
		}
		if r, err := w.Other.Find(w.ctx, fmt.Sprint(id)); err != nil || r.OwnerAlive || r.State != status.RunRunning {
			w.Errorf("run = %+v, err = %v, want running without a live owner", r, err)
		}
	}},
	{name: "view/alerts come newest first", need: hasViews, why: "each turn to parked gives exactly one alert, in the commit that makes it, and says which run it is about, by its unique key too (S59, S62, I9)", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 1)
		named := w.submit(a.writers[0], w.create(a), naming.Names{Name: "order-7", Workflow: flowName, Key: "k-7"})
		ids = append(ids, named.Run)
		var want []store.AlertRow
		for seq := int32(1); seq <= 3; seq++ {
			t, u := next(ids[0], seq), next(ids[1], seq)
			u.At = u.At.Add(time.Millisecond)
			t.Alerts = []store.Alert{{Kind: "parked", Step: "ship", Code: "c", Message: fmt.Sprint("m", seq)}}
			u.Alerts = []store.Alert{{Kind: "overdue"}}
			w.land(a.writers[0], t, u)
			want = append(want,
				store.AlertRow{Alert: t.Alerts[0], Run: t.Run, Name: naming.RunName(t.Run), Workflow: flowName, At: t.At},
				store.AlertRow{Alert: u.Alerts[0], Run: u.Run, Name: "order-7", Workflow: flowName, Key: "k-7", At: u.At})
		}
		slices.Reverse(want)
		got, err := w.Other.Alerts(w.ctx, 0, 4)
		if plain := withoutIDs(got); err != nil || !reflect.DeepEqual(plain, want[:4]) {
			w.Errorf("alerts = %+v, err = %v, want %+v", got, err, want[:4])
		}
		for i, a := range got {
			if a.ID <= 0 || i > 0 && a.ID >= got[i-1].ID {
				w.Errorf("alert %d has id %d, want rising ids: %+v", i, a.ID, got)
			}
		}
		if one, err := w.Other.Alerts(w.ctx, ids[1], 10); err != nil || len(one) != 3 || one[0] != got[0] {
			w.Errorf("alerts of one run = %+v, err = %v", one, err)
		}
	}},
	{name: "view/an alert of an older engine has the present name of its kind", need: hasViews, why: "people and programs know one name for each kind, and no row is rewritten when an engine is upgraded", run: func(w *world) {
		a := w.join(w.Store, 1)
		run := w.started(a, 1)[0]
		t := next(run, 1)
		t.Alerts = []store.Alert{{Kind: "set_aside", Code: "internal", Message: "m"}}
		w.land(a.writers[0], t)
		want := store.Alert{Kind: "quarantined", Code: "internal", Message: "m"}
		if got, err := w.Other.Alerts(w.ctx, run, 10); err != nil || len(got) != 1 || got[0].Alert != want {
			w.Errorf("alerts = %+v, err = %v, want %+v", got, err, want)
		}
		if got, err := w.Other.Undelivered(w.ctx, 10); err != nil || len(got) != 1 || got[0].Alert != want {
			w.Errorf("alerts to push = %+v, err = %v, want %+v", got, err, want)
		}
	}},
}

func withoutIDs(rows []store.AlertRow) []store.AlertRow {
	out := slices.Clone(rows)
	for i := range out {
		out[i].ID = 0
	}
	return out
}

var readRules = []rule{
	{name: "read/rows come in pages without gaps", why: "followers read on from where they stopped; the sequence has no gaps (I10, S87)", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		for seq := int32(1); seq < 10; seq++ {
			w.land(a.writers[0], next(id, seq))
		}
		for _, c := range []struct{ from, limit, first, n int }{{0, 100, 0, 10}, {3, 4, 3, 4}, {8, 4, 8, 2}, {10, 4, 0, 0}, {0, 1, 0, 1}} {
			rows, err := w.Other.Rows(w.ctx, id, int32(c.from), c.limit)
			if err != nil || len(rows) != c.n {
				w.Fatalf("rows from %d limit %d: %d rows, err = %v, want %d", c.from, c.limit, len(rows), err, c.n)
			}
			for i, r := range rows {
				if int(r.Seq) != c.first+i {
					w.Errorf("rows from %d: row %d has seq %d", c.from, i, r.Seq)
				}
			}
		}
		if rows, err := w.Other.Rows(w.ctx, id+1, 0, 10); len(rows) != 0 || err != nil {
			w.Errorf("rows of no run = %v, err = %v", rows, err)
		}
	}},
	{name: "read/lists filter and limit, newest first", why: "status is a query (S85)", run: func(w *world) {
		a := w.join(w.Store, 1)
		other, err := w.Store.PutDefinition(w.ctx, store.Definition{Digest: "d2", Data: []byte("2"), Workflows: []store.DefinedWorkflow{{Name: "refund"}, {Name: flowName, Steps: stepNames}}})
		if err != nil {
			w.Fatal(err)
		}
		var runs []status.RunID
		for i := range 6 {
			c := w.create(a)
			c.At = base.Add(time.Duration(i) * time.Minute)
			n := naming.Names{Workflow: flowName}
			switch i {
			case 1:
				c.Workflow, n.Workflow = other["refund"], "refund"
			case 2:
				c.Workflow = other[flowName]
			case 3:
				n.Key = "k"
			}
			w.submit(a.writers[0], c, n)
			runs = append(runs, c.Run)
		}
		w.land(a.writers[0], end(runs[4], 1, status.RunSucceeded), end(runs[5], 1, status.RunParked))
		for name, c := range map[string]struct {
			f    store.RunFilter
			want []int
		}{
			"all":            {store.RunFilter{}, []int{5, 4, 3, 2, 1, 0}},
			"limit":          {store.RunFilter{Limit: 2}, []int{5, 4}},
			"one state":      {store.RunFilter{States: []status.RunState{status.RunParked}}, []int{5}},
			"two states":     {store.RunFilter{States: []status.RunState{status.RunParked, status.RunSucceeded}}, []int{5, 4}},
			"workflow":       {store.RunFilter{Workflow: flowName}, []int{5, 4, 3, 2, 0}},
			"other workflow": {store.RunFilter{Workflow: "refund"}, []int{1}},
			"digest":         {store.RunFilter{Digest: "d2"}, []int{2, 1}},
			"key":            {store.RunFilter{Key: "k"}, []int{3}},
			"since":          {store.RunFilter{Since: base.Add(3 * time.Minute)}, []int{5, 4, 3}},
			"before":         {store.RunFilter{Before: runs[3]}, []int{2, 1, 0}},
			"key before":     {store.RunFilter{Key: "k", Before: runs[3]}, nil},
			"open before":    {store.RunFilter{States: []status.RunState{status.RunRunning, status.RunQueued, status.RunParked}, Before: runs[2]}, []int{1, 0}},
			"together":       {store.RunFilter{Workflow: flowName, Digest: digest, States: []status.RunState{status.RunRunning}, Limit: 1}, []int{3}},
			"nothing":        {store.RunFilter{Workflow: "none"}, nil},
		} {
			rs, err := w.Other.Runs(w.ctx, c.f)
			if err != nil {
				w.Fatalf("%s: %v", name, err)
			}
			var got, want []status.RunID
			for _, r := range rs {
				got = append(got, r.Run)
			}
			for _, i := range c.want {
				want = append(want, runs[i])
			}
			if !slices.Equal(got, want) {
				w.Errorf("%s: runs = %v, want %v", name, got, want)
			}
		}
	}},
	{name: "read/a list without a limit has one", why: "a list must never be a scan of everything (S89)", run: func(w *world) {
		const limit = 100 // the limit that a store uses if RunFilter.Limit is 0
		a := w.join(w.Store, 1)
		w.started(a, limit+5)
		if rs, err := w.Other.Runs(w.ctx, store.RunFilter{}); err != nil || len(rs) != limit {
			w.Errorf("%d runs, err = %v, want %d", len(rs), err, limit)
		}
	}},
	{name: "read/what is not there is not found", why: "callers branch on it", run: func(w *world) {
		for _, name := range []string{"nobody", "12345", "", "99999999999999999999", "-1", "a\x00b"} {
			if _, err := w.Store.Find(w.ctx, name); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("find %q: err = %v, want ErrNotFound", name, err)
			}
		}
		if _, _, err := store.LoadRun(w.ctx, w.Store, 77); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("load: err = %v, want ErrNotFound", err)
		}
		if _, _, err := w.Store.Definition(w.ctx, 999); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("definition: err = %v, want ErrNotFound", err)
		}
		if got, err := w.Store.StepRows(w.ctx, 77); len(got) != 0 || err != nil {
			w.Errorf("step rows = %v, err = %v", got, err)
		}
	}},
	{name: "read/definitions are kept once by digest", why: "runs are pinned to a digest; every apply stores its definition again (E9)", run: func(w *world) {
		d := store.Definition{Digest: "d3", Data: []byte{0, 1, 255}, Workflows: []store.DefinedWorkflow{{Name: "x", Steps: []string{"s"}, Retention: 36 * time.Hour}, {Name: "y"}}}
		got := make([]map[string]store.WorkflowID, 8)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = []store.Store{w.Store, w.Other}[i%2].PutDefinition(w.ctx, d); err != nil {
					w.Errorf("put: %v", err)
				}
			})
		}
		wg.Wait()
		for _, ids := range got {
			if len(ids) != 2 || ids["x"] == ids["y"] || ids["x"] == 0 || !reflect.DeepEqual(ids, got[0]) {
				w.Fatalf("ids = %v and %v, want the same two", ids, got[0])
			}
		}
		back, name, err := w.Other.Definition(w.ctx, got[0]["y"])
		if err != nil || name != "y" || !reflect.DeepEqual(back, d) {
			w.Errorf("definition = %+v of %q, err = %v, want %+v", back, name, err, d)
		}
		again, err := w.Store.PutDefinition(w.ctx, store.Definition{Digest: "d4", Data: []byte("4"), Workflows: d.Workflows})
		if err != nil || again["x"] == got[0]["x"] {
			w.Errorf("another digest: ids = %v, err = %v, want new ones", again, err)
		}
	}},
	{name: "read/readers do not slow writers", why: "command and query sides scale apart (S86)",
		need: func(h Harness) bool { return h.Read != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			id := w.started(a, 1)[0]
			stop := w.Read(w.T)
			w.land(a.writers[0], next(id, 1), w.create(a))
			w.submit(a.writers[0], w.create(a), naming.Names{Name: "n", Workflow: flowName, Key: "k"})
			w.tick(a)
			w.bury(a)
			stop()
			w.wantRows(id, 2)
		}},
	{name: "read/writers do not stop readers", why: "status reads never lock the write path nor wait for it (S86)",
		need: func(h Harness) bool { return h.Hold != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			id := w.started(a, 1)[0]
			wait, release := w.Hold(w.T, id, 1)
			t := next(id, 1)
			t.State = status.RunPaused
			landed := w.landLater(a.writers[0], t)
			wait(1)
			w.wantRows(id, 1)
			if rs, err := w.Other.Runs(w.ctx, store.RunFilter{}); len(rs) != 1 || rs[0].State != status.RunRunning || err != nil {
				w.Errorf("runs = %+v, err = %v, want what was committed", rs, err)
			}
			if _, err := w.Other.StepRows(w.ctx, id); err != nil {
				w.Errorf("step rows: %v", err)
			}
			release()
			landed()
		}},
}
