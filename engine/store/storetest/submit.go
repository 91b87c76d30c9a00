package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

var submitRules = slices.Concat(submissionRules, admitRules, needed(hasViews, roomRules))

var submissionRules = []rule{
	{name: "submit/the run shows under its names", why: "a public id and a key are what people hold in their hands (S85)", run: func(w *world) {
		a := w.join(w.Store, 1)
		c := w.create(a)
		s := w.submit(a.writers[0], c, naming.Names{Name: "order-1", Workflow: flowName, Key: "k1"})
		if want := (store.Submitted{Run: c.Run, Name: "order-1"}); s != want {
			w.Errorf("submitted = %+v, want %+v", s, want)
		}
		for _, name := range []string{"order-1", strconv.FormatInt(int64(c.Run), 10)} {
			r, err := w.Other.Find(w.ctx, name)
			if err != nil || r.Run != c.Run || r.Name != "order-1" || r.Key != "k1" || r.WorkflowName != flowName || r.Digest != digest || !r.OwnerAlive {
				w.Errorf("find %q = %+v, err = %v", name, r, err)
			}
		}
		if h, rows := w.load(c.Run); h.Name != "order-1" || len(rows) != 1 {
			w.Errorf("head = %+v with %d rows", h, len(rows))
		}
	}},
	{name: "submit/without a name it is the id", why: "every run has a public id (language.md, Run ids)", run: func(w *world) {
		a := w.join(w.Store, 1)
		c := w.create(a)
		want := naming.RunName(c.Run)
		if s := w.submit(a.writers[0], c, naming.Names{Workflow: flowName}); s.Name != want || s.Exists {
			w.Errorf("submitted = %+v, want name %s", s, want)
		}
		for _, name := range []string{want, strconv.FormatInt(int64(c.Run), 10)} {
			if r, err := w.Store.Find(w.ctx, name); err != nil || r.Run != c.Run || r.Name != want {
				w.Errorf("%s is run %d named %q, err = %v, want %d named %q", name, r.Run, r.Name, err, c.Run, want)
			}
		}
		d := w.create(a)
		for _, name := range []string{want, naming.RunName(d.Run)} {
			if s, err := Submit(w.ctx, a.writers[0], d, naming.Names{Name: name}); err == nil {
				w.Errorf("submitted under a name that engines give = %+v, want it refused", s)
			}
		}
	}},
	{name: "submit/a name that exists is that run", why: "submission is idempotent by its id: sent twice it is one run (I1)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		c := w.create(a)
		w.submit(a.writers[0], c, naming.Names{Name: "n", Workflow: flowName, Key: "k"})
		w.land(a.writers[0], end(c.Run, 1, status.RunFailed))
		d := w.create(b)
		s := w.submit(b.writers[0], d, naming.Names{Name: "n", Workflow: flowName, Key: "other"})
		if want := (store.Submitted{Run: c.Run, Name: "n", Exists: true}); s != want {
			w.Errorf("submitted = %+v, want %+v", s, want)
		}
		w.wantNothing(d.Run, "other")
		if s := w.submit(a.writers[0], c, naming.Names{Name: "n"}); !s.Exists || s.Run != c.Run {
			w.Errorf("the same submission again = %+v, want it found", s)
		}
		w.wantRows(c.Run, 2)
	}},
	{name: "submit/a key is held while the run may still act or has acted", why: "one order, one run: open, needing a human and succeeded hold the key (I11)", run: func(w *world) {
		a := w.join(w.Store, 1)
		for _, s := range []status.RunState{0, status.RunPaused, status.RunCompensating, status.RunParked, status.RunCompensationFailed, status.RunSucceeded} {
			n := naming.Names{Workflow: flowName, Key: "key-" + s.String()}
			c := w.create(a)
			w.submit(a.writers[0], c, n)
			if s != 0 {
				w.land(a.writers[0], end(c.Run, 1, s))
			}
			d := w.create(a)
			if got := w.submit(a.writers[0], d, n); !got.Exists || got.Run != c.Run {
				w.Errorf("%v: submitted = %+v, want the run that holds the key", s, got)
			}
			if _, _, err := store.LoadRun(w.ctx, w.Store, d.Run); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("%v: refused run: err = %v, want ErrNotFound", s, err)
			}
		}
	}},
	{name: "submit/a run that left nothing behind frees its key", why: "failed, compensated and cancelled runs are done with: the same order may be tried again", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := naming.Names{Workflow: flowName, Key: "again"}
		var runs []status.RunID
		for _, s := range []status.RunState{status.RunFailed, status.RunCompensated, status.RunCancelled} {
			c := w.create(a)
			if got := w.submit(a.writers[0], c, n); got.Exists || got.Run != c.Run {
				w.Fatalf("before %v: submitted = %+v, want a new run", s, got)
			}
			w.land(a.writers[0], end(c.Run, 1, s))
			runs = append(runs, c.Run)
		}
		rs, err := w.Other.Runs(w.ctx, store.RunFilter{Key: "again"})
		if err != nil || len(rs) != len(runs) || rs[0].Run != runs[2] || rs[2].Run != runs[0] {
			w.Errorf("runs of the key = %+v, err = %v, want all three, newest first", rs, err)
		}
	}},
	{name: "submit/keys belong to a workflow", why: "one row per (workflow, key), whatever the definition's version", run: func(w *world) {
		a := w.join(w.Store, 1)
		for _, flow := range []string{flowName, "other"} {
			if s := w.submit(a.writers[0], w.create(a), naming.Names{Workflow: flow, Key: "k"}); s.Exists {
				w.Errorf("%s: submitted = %+v, want a new run", flow, s)
			}
		}
		for range 2 {
			if s := w.submit(a.writers[0], w.create(a), naming.Names{Workflow: flowName}); s.Exists {
				w.Errorf("without a key: submitted = %+v, want a new run", s)
			}
		}
	}},
	{name: "submit/of many at once exactly one lands", why: "uniqueness is a row with a unique index, never check-then-insert (S55, I11)", run: func(w *world) {
		const callers, rounds = 4, 10
		var actors []actor
		for i := range callers {
			actors = append(actors, w.join([]store.Store{w.Store, w.Other}[i%2], 1))
		}
		for round := range rounds {
			names := naming.Names{Workflow: flowName, Key: fmt.Sprint("key", round)}
			if round%2 == 1 {
				names = naming.Names{Workflow: flowName, Name: fmt.Sprint("name", round)}
			}
			var wg sync.WaitGroup
			got := make([]store.Submitted, callers)
			for i, a := range actors {
				c := w.create(a)
				wg.Go(func() {
					var err error
					if got[i], err = Submit(w.ctx, a.writers[0], c, names); err != nil {
						w.Errorf("caller %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			landed := 0
			for _, s := range got {
				if !s.Exists {
					landed++
				}
				if s.Run != got[0].Run || s.Run == 0 {
					w.Errorf("round %d: callers got runs %d and %d, want one", round, s.Run, got[0].Run)
				}
			}
			if landed != 1 {
				w.Errorf("round %d: %d submissions landed, want 1", round, landed)
			}
			w.wantRows(got[0].Run, 1)
			// Cancel the run, so that the next round can use the key.
			if names.Key != "" {
				w.land(actors[0].writers[0], end(got[0].Run, 1, status.RunCancelled))
			}
		}
		if rs, err := w.Other.Runs(w.ctx, store.RunFilter{Limit: 1000}); len(rs) != rounds || err != nil {
			w.Errorf("%d runs, err = %v, want %d", len(rs), err, rounds)
		}
	}},
	{name: "submit/a freed key is won once", why: "two submissions that both see it free must not both take it", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		n := naming.Names{Workflow: flowName, Key: "k"}
		for round := range 10 {
			got := make([]store.Submitted, 2)
			var wg sync.WaitGroup
			for i, x := range []actor{a, b} {
				c := w.create(x)
				wg.Go(func() {
					var err error
					if got[i], err = Submit(w.ctx, x.writers[0], c, n); err != nil {
						w.Errorf("submit: %v", err)
					}
				})
			}
			wg.Wait()
			if got[0].Exists == got[1].Exists || got[0].Run != got[1].Run {
				w.Fatalf("round %d: submitted = %+v and %+v, want one new run", round, got[0], got[1])
			}
			w.land(a.writers[0], end(got[0].Run, 1, status.RunCompensated))
		}
	}},
	{name: "submit/a collision of ids leaves no names", why: "both or neither: the caller makes a new id and needs the name free (S54)", run: func(w *world) {
		a := w.join(w.Store, 1)
		taken := w.started(a, 1)[0]
		c := w.create(a)
		c.Run = taken
		n := naming.Names{Name: "n", Workflow: flowName, Key: "k"}
		if s, err := Submit(w.ctx, a.writers[0], c, n); !errors.Is(err, store.ErrExists) {
			w.Errorf("submitted = %+v, err = %v, want ErrExists", s, err)
		}
		if s := w.submit(a.writers[0], w.create(a), n); s.Exists {
			w.Errorf("submitted = %+v, want a new run", s)
		}
	}},
	{name: "submit/what is refused leaves nothing", why: "a refused submit leaves nothing (I1, S54)", run: func(w *world) {
		a := w.join(w.Store, 1)
		for name, try := range map[string]struct {
			spoil func(*store.Transition)
			names naming.Names
		}{
			"illegal row":    {func(t *store.Transition) { t.Steps = []store.StepRow{{State: status.StepRunning}} }, naming.Names{Name: "n"}},
			"no such flow":   {func(t *store.Transition) { t.Workflow = 9999 }, naming.Names{Name: "n"}},
			"name too long":  {func(*store.Transition) {}, naming.Names{Name: strings.Repeat("x", naming.MaxNameLen+1)}},
			"key too long":   {func(*store.Transition) {}, naming.Names{Name: "n", Key: strings.Repeat("k", naming.MaxKeyBytes+1)}},
			"name not plain": {func(*store.Transition) {}, naming.Names{Name: "n'; DROP TABLE run"}},
			"name not text":  {func(*store.Transition) {}, naming.Names{Name: "n\x00"}},
			"key not text":   {func(*store.Transition) {}, naming.Names{Name: "n", Key: "\xff"}},
			"not at seq 0":   {func(t *store.Transition) { t.Seq = 1 }, naming.Names{Name: "n"}},
			"without state":  {func(t *store.Transition) { t.State = 0 }, naming.Names{Name: "n"}},
			"without bound":  {func(t *store.Transition) { t.NextCheck = base.AddDate(-9999, 0, 0); t.Owner = nil }, naming.Names{Name: "n"}},
			"without record": {func(t *store.Transition) { t.Data = nil }, naming.Names{Name: "n"}},
		} {
			c := w.create(a)
			try.spoil(&c)
			try.names.Workflow = flowName
			if try.names.Key == "" {
				try.names.Key = "k"
			}
			if s, err := Submit(w.ctx, a.writers[0], c, try.names); err == nil {
				w.Errorf("%s: submitted = %+v", name, s)
			}
			w.wantNothing(c.Run, try.names.Key)
		}
		longest := naming.Names{Name: strings.Repeat("x", naming.MaxNameLen), Workflow: flowName, Key: strings.Repeat("k", naming.MaxKeyBytes)}
		if s := w.submit(a.writers[0], w.create(a), longest); s.Exists {
			w.Errorf("longest names: submitted = %+v", s)
		}
	}},
	{name: "submit/given up half way leaves both or neither", why: "a crash between the inserts must not leave a name without a run (S54)",
		need: func(h Harness) bool { return h.Hold != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			c := w.create(a)
			n := naming.Names{Name: "half", Workflow: flowName, Key: "half"}
			wait, release := w.Hold(w.T, c.Run, 0)
			ctx, cancel := context.WithCancel(w.ctx)
			done := make(chan error)
			go func() {
				_, err := Submit(ctx, a.writers[0], c, n)
				done <- err
			}()
			wait(1)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				w.Errorf("err = %v, want context canceled", err)
			}
			release()
			// The server may complete the interrupted transaction or not. In both cases the
			// name and the key must belong to the same run.
			s := w.submit(a.writers[0], w.create(a), n)
			r, err := w.Other.Find(w.ctx, "half")
			if err != nil || r.Run != s.Run || r.Key != "half" {
				w.Errorf("find = %+v, err = %v, want run %d", r, err, s.Run)
			}
			w.wantRows(s.Run, 1)
		}},
}
