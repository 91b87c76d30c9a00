package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

var ownerRules = []rule{
	{name: "owner/zero fields change nothing", why: "NULL means unchanged and costs nothing", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		before, _ := w.load(id)
		w.land(a.writers[0], next(id, 1))
		if after, _ := w.load(id); after != before {
			w.Errorf("head = %+v, want unchanged %+v", after, before)
		}
	}},
	{name: "owner/each field changes alone", why: "a record sets the bound, the state or the owner independently", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		want, _ := w.load(id)
		check := next(id, 1)
		check.NextCheck = base.Add(time.Minute)
		w.land(a.writers[0], check)
		want.NextCheck = check.NextCheck
		if got, _ := w.load(id); got != want {
			w.Errorf("after the bound: %+v, want %+v", got, want)
		}
		state := next(id, 2)
		state.State = status.RunCompensating
		w.land(a.writers[0], state)
		want.State = state.State
		if got, _ := w.load(id); got != want {
			w.Errorf("after the state: %+v, want %+v", got, want)
		}
		never := next(id, 3)
		never.NextCheck = store.Never
		w.land(a.writers[0], never)
		want.NextCheck = store.Never
		if got, _ := w.load(id); got != want {
			w.Errorf("after Never: %+v, want %+v", got, want)
		}
	}},
	{name: "owner/a run ends in the record that ends it", why: "finished_at stands iff the state is final", run: func(w *world) {
		a := w.join(w.Store, 1)
		for _, s := range []status.RunState{status.RunSucceeded, status.RunFailed, status.RunCompensated, status.RunCancelled} {
			id := w.started(a, 1)[0]
			if h, _ := w.load(id); !h.FinishedAt.IsZero() {
				w.Errorf("open run finished at %v", h.FinishedAt)
			}
			t := end(id, 1, s)
			w.land(a.writers[0], t)
			if h, _ := w.load(id); h.State != s || !h.FinishedAt.Equal(t.At) {
				w.Errorf("head = %+v, want %v finished at %v", h, s, t.At)
			}
		}
		for _, s := range []status.RunState{status.RunParked, status.RunCompensationFailed} {
			id := w.started(a, 1)[0]
			w.land(a.writers[0], end(id, 1, s))
			if h, _ := w.load(id); !h.FinishedAt.IsZero() {
				w.Errorf("%v run finished at %v: it needs a human", s, h.FinishedAt)
			}
		}
	}},
	{name: "owner/takeover is one record", why: "only the owner appends, or who becomes the owner in that very record; its seq is the fencing token", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		id := w.started(a, 1)[0]
		w.land(a.writers[0], next(id, 1))
		w.bury(a)
		take := next(id, 2)
		take.Owner = &b.id
		w.land(b.writers[0], take)
		if h, _ := w.load(id); h.Owner != b.id || h.Fence != 2 {
			w.Errorf("owner = %d, fence = %d, want %d, 2", h.Owner, h.Fence, b.id)
		}
		w.land(b.writers[0], next(id, 3))
		if h, _ := w.load(id); h.Owner != b.id || h.Fence != 2 {
			w.Errorf("owner = %d, fence = %d after an ordinary record, want %d, 2", h.Owner, h.Fence, b.id)
		}
	}},
	{name: "owner/of two survivors one is stale", why: "both read the same last seq; the journal's key decides, harmlessly (S21, S55, I2)", run: func(w *world) {
		dead, a, b := w.join(w.Store, 1), w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(dead, 20)
		w.bury(dead)
		won := make(chan store.EngineID, 2*len(ids))
		done := make(chan struct{})
		for _, x := range []actor{a, b} {
			go func() {
				defer func() { done <- struct{}{} }()
				var batch []store.Transition
				for _, id := range ids {
					t := next(id, 1)
					t.Owner = &x.id
					batch = append(batch, t)
				}
				out, err := x.writers[0].Commit(w.ctx, batch)
				if err != nil {
					w.Errorf("takeover: %v", err)
				}
				for _, o := range out {
					if o.Landed {
						won <- x.id
					}
				}
			}()
		}
		<-done
		<-done
		if len(won) != len(ids) {
			w.Errorf("%d takeovers landed, want one for each of %d runs", len(won), len(ids))
		}
		for _, id := range ids {
			if h, rows := w.load(id); h.Owner != a.id && h.Owner != b.id || len(rows) != 2 {
				w.Errorf("run %d: head = %+v with %d rows", id, h, len(rows))
			}
		}
	}},
	{name: "owner/a run may be handed to nobody", why: "an engine that does not understand a row leaves the run for others", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		t := next(id, 1)
		t.Owner = ptr(store.EngineID(0))
		w.land(a.writers[0], t)
		if h, _ := w.load(id); h.Owner != 0 || h.Fence != 1 {
			w.Errorf("owner = %d, fence = %d, want 0, 1", h.Owner, h.Fence)
		}
		if got, err := IDs(w.Other.Runs(w.ctx, Orphans(0, 10))); err != nil || !slices.Equal(got, []status.RunID{id}) {
			w.Errorf("orphans = %v, err = %v, want %d", got, err, id)
		}
	}},
}

var memberRules = []rule{
	{name: "member/every start is a new number", why: "identity is a membership, never an address (E3)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		if a.id <= 0 || b.id <= 0 || a.id == b.id {
			w.Errorf("engines %d and %d, want two positive numbers", a.id, b.id)
		}
		if live, err := w.Other.Live(w.ctx); len(live) != 2 || err != nil {
			w.Errorf("live engines = %v, err = %v, want 2", live, err)
		}
		w.Expire(w.T, a.id)
		if live, err := w.Other.Live(w.ctx); len(live) != 1 || err != nil {
			w.Errorf("live engines = %v, err = %v, want 1", live, err)
		}
	}},
	{name: "tick/renews the lease and tells the time", why: "At is store time: engines an hour apart agree", run: func(w *world) {
		a := w.join(w.Store, 1)
		one := w.tick(a)
		two := w.tick(a)
		if one.Now.IsZero() || two.Now.Before(one.Now) {
			w.Errorf("ticks at %v and %v", one.Now, two.Now)
		}
		short, err := w.Store.Join(w.ctx, "test", time.Hour, 1)
		if err != nil {
			w.Fatal(err)
		}
		w.Expire(w.T, short)
		if live, err := w.Store.Live(w.ctx); len(live) != 1 || err != nil {
			w.Errorf("live engines = %v, err = %v, want 1", live, err)
		}
	}},
	{name: "tick/a lapsed engine cannot renew", why: "survivors may have begun to fence it: it must stop and come back as a new membership", run: func(w *world) {
		a := w.join(w.Store, 1)
		w.Expire(w.T, a.id)
		for range 2 {
			if _, err := w.Store.Tick(w.ctx, a.id, time.Hour, 10); !errors.Is(err, store.ErrLapsed) {
				w.Errorf("tick of a lapsed engine: err = %v, want ErrLapsed", err)
			}
		}
		w.bury(a)
		if _, err := w.Store.Tick(w.ctx, a.id, time.Hour, 10); !errors.Is(err, store.ErrLapsed) {
			w.Errorf("tick of a dead engine: err = %v, want ErrLapsed", err)
		}
	}},
	{name: "tick/finds own due runs, earliest first", why: "the one failure signal is a row with its time in the past (S37, S58)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		now := w.tick(a).Now
		own := w.started(a, 5)
		foreign := w.started(b, 1)
		due := func(wr store.Writer, id status.RunID, at time.Time) {
			t := next(id, 1)
			t.NextCheck = at
			w.land(wr, t)
		}
		due(a.writers[0], own[0], now.Add(-time.Minute))
		due(a.writers[0], own[1], now.Add(-time.Hour))
		due(a.writers[0], own[2], now.Add(time.Hour))
		due(a.writers[0], own[3], store.Never)
		ended := end(own[4], 1, status.RunSucceeded)
		ended.NextCheck = now.Add(-time.Hour)
		w.land(a.writers[0], ended)
		due(b.writers[0], foreign[0], now.Add(-time.Minute))
		want := []store.DueRun{{Run: own[1], NextCheck: now.Add(-time.Hour)}, {Run: own[0], NextCheck: now.Add(-time.Minute)}}
		if got := w.tick(a); !slices.Equal(got.Due, want) || len(got.Unowned) != 0 || len(got.Dead) != 0 {
			w.Errorf("tick = %+v, want due %+v", got, want)
		}
		if got, err := w.Store.Tick(w.ctx, a.id, time.Hour, 1); err != nil || !slices.Equal(got.Due, want[:1]) {
			w.Errorf("tick with limit 1 = %+v, err = %v", got, err)
		}
	}},
	{name: "tick/finds due runs of nobody", why: "any engine may take them over", run: func(w *world) {
		a := w.join(w.Store, 1)
		now := w.tick(a).Now
		ids := w.started(a, 2)
		for i, at := range []time.Time{now.Add(-time.Minute), now.Add(time.Hour)} {
			t := next(ids[i], 1)
			t.Owner, t.NextCheck = ptr(store.EngineID(0)), at
			w.land(a.writers[0], t)
		}
		want := []store.DueRun{{Run: ids[0], NextCheck: now.Add(-time.Minute)}}
		if got := w.tick(a); !slices.Equal(got.Unowned, want) || len(got.Due) != 0 {
			w.Errorf("tick = %+v, want unowned %+v", got, want)
		}
	}},
	{name: "tick/finds the dead", why: "a lease in the past is the only sign of death; it needs no message (S30, S42)", run: func(w *world) {
		a, b, c := w.join(w.Store, 1), w.join(w.Other, 1), w.join(w.Other, 1)
		w.started(b, 1)
		w.started(c, 1)
		w.Expire(w.T, b.id)
		w.bury(c)
		if got := w.tick(a); !slices.Equal(got.Dead, []store.EngineID{b.id, c.id}) {
			w.Errorf("dead = %v, want lapsed %d and dead %d", got.Dead, b.id, c.id)
		}
	}},
	{name: "fence/spares the living", why: "only a lease in the past is death: fencing a live engine off would double its work", run: func(w *world) {
		a := w.join(w.Store, 1)
		if dead, err := w.Other.Fence(w.ctx, a.id); dead || err != nil {
			w.Errorf("fence of a live engine: dead = %v, err = %v", dead, err)
		}
		w.started(a, 1)
	}},
	{name: "fence/is harmless twice", why: "survivors race to it", run: func(w *world) {
		a := w.join(w.Store, 1)
		w.started(a, 1)
		w.bury(a)
		w.bury(a)
		if dead, err := w.Other.Fence(w.ctx, 1<<30); !dead || err != nil {
			w.Errorf("fence of an engine nobody knows: dead = %v, err = %v, want true", dead, err)
		}
	}},
	{name: "fence/stops every writer of the dead", why: "one writer left would go on appending to runs that others own now (I3)", run: func(w *world) {
		a := w.join(w.Store, 3)
		ids := w.started(a, 3)
		w.bury(a)
		for n, wr := range a.writers {
			if out, err := wr.Commit(w.ctx, []store.Transition{next(ids[n], 1), w.create(a)}); !errors.Is(err, store.ErrFenced) {
				w.Errorf("writer %d: outcomes = %+v, err = %v, want ErrFenced", n, out, err)
			}
			if s, err := Submit(w.ctx, wr, w.create(a), naming.Names{}); !errors.Is(err, store.ErrFenced) {
				w.Errorf("writer %d: submitted = %+v, err = %v, want ErrFenced", n, s, err)
			}
			w.wantRows(ids[n], 1)
		}
		if rs, err := w.Other.Runs(w.ctx, store.RunFilter{}); len(rs) != len(ids) || err != nil {
			w.Errorf("%d runs, err = %v, want %d: a fenced engine created one", len(rs), err, len(ids))
		}
		if _, err := w.Store.OpenWriter(w.ctx, a.id, 0); !errors.Is(err, store.ErrFenced) {
			w.Errorf("open writer of a dead engine: err = %v, want ErrFenced", err)
		}
	}},
	{name: "fence/what landed before counts, though its reply was lost", why: "a batch that landed is landed: its commands would otherwise be forgotten", run: func(w *world) {
		a := w.join(w.Store, 1)
		b := w.join(w.Store, 1)
		ids := w.started(a, 2)
		w.land(b.writers[0], next(ids[1], 1))
		w.LoseFenced(w.T, a.id, true)
		out := w.commit(a.writers[0], next(ids[0], 1), next(ids[1], 1))
		if !out[0].Landed || out[1].Landed || !errors.Is(out[1].Err, store.ErrStale) {
			w.Errorf("outcomes = %+v, want landed, ErrStale", out)
		}
		if _, err := a.writers[0].Commit(w.ctx, []store.Transition{next(ids[0], 2)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("err = %v, want ErrFenced", err)
		}
		w.wantRows(ids[0], 2)

		c := w.create(b)
		w.LoseFenced(w.T, b.id, true)
		if s := w.submit(b.writers[0], c, naming.Names{Name: "n", Workflow: flowName}); s.Exists || s.Run != c.Run {
			w.Errorf("submitted = %+v, want run %d", s, c.Run)
		}
		w.wantRows(c.Run, 1)
	}},
	{name: "fence/what did not land before is refused", why: "nothing of a dead engine may land after survivors have read its runs", run: func(w *world) {
		a := w.join(w.Store, 1)
		b := w.join(w.Store, 1)
		ids := w.started(a, 1)
		w.LoseFenced(w.T, a.id, false)
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{next(ids[0], 1)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("outcomes = %+v, err = %v, want ErrFenced", out, err)
		}
		w.wantRows(ids[0], 1)
		c := w.create(b)
		w.LoseFenced(w.T, b.id, false)
		if s, err := Submit(w.ctx, b.writers[0], c, naming.Names{Name: "n", Workflow: flowName, Key: "k"}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("submitted = %+v, err = %v, want ErrFenced", s, err)
		}
		w.wantNothing(c.Run, "k")
	}},
	{name: "fence/waits for batches in flight", why: "after it none can land: what survivors read next is final",
		need: func(h Harness) bool { return h.Hold != nil },
		run:  func(w *world) { w.fenceWaits(2) }},
	{name: "fence/waits for a lone transition in flight", why: "a store may send a transition that is alone by another statement, and that one takes the fence row too",
		need: func(h Harness) bool { return h.Hold != nil },
		run:  func(w *world) { w.fenceWaits(1) }},
	{name: "orphans/come in pages", why: "a takeover of 100,000 runs goes in batches of 1,000", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 25)
		w.started(b, 3)
		w.land(a.writers[0], end(ids[3], 1, status.RunFailed))
		w.Expire(w.T, a.id)
		if got, err := IDs(w.Store.Runs(w.ctx, Orphans(0, 100))); len(got) != 0 || err != nil {
			w.Errorf("orphans of a lapsed engine that is not fenced = %v, err = %v", got, err)
		}
		w.bury(a)
		var got []status.RunID
		for after := status.RunID(0); ; {
			page, err := IDs(w.Store.Runs(w.ctx, Orphans(after, 10)))
			if err != nil {
				w.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			if len(page) > 10 {
				w.Fatalf("page of %d, want at most 10", len(page))
			}
			got, after = append(got, page...), page[len(page)-1]
		}
		if want := slices.Delete(slices.Clone(ids), 3, 4); !slices.Equal(got, want) {
			w.Errorf("orphans = %v, want %v", got, want)
		}
	}},
	{name: "orphans/leave out runs at rest", why: "a run that waits for a person gains nothing by changing hands, and would at every start", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 5)
		for i, to := range []struct {
			state status.RunState
			check time.Time
		}{
			{status.RunParked, store.Never},
			{status.RunParked, base.Add(time.Hour)}, // not at rest: its next_check is not Never
			{status.RunCompensationFailed, store.Never},
			{status.RunPaused, store.Never},
		} {
			t := next(ids[i], 1)
			t.State, t.NextCheck = to.state, to.check
			w.land(a.writers[0], t)
		}
		w.bury(a)
		if got, err := IDs(w.Other.Runs(w.ctx, Orphans(0, 10))); err != nil || !slices.Equal(got, []status.RunID{ids[1], ids[3], ids[4]}) {
			w.Errorf("orphans = %v, err = %v, want %v without the first and the third", got, err, ids)
		}
		if h, _ := w.load(ids[0]); !h.AtRest() {
			w.Errorf("head = %+v, want it at rest", h)
		}
	}},
	{name: "key/the first one stays", why: "with two keys on one store there would be runs that no engine can read", run: func(w *world) {
		pin := func(s store.Store, id, want string) {
			w.Helper()
			if got, err := s.Pin(w.ctx, "key", id); got != want || err != nil {
				w.Errorf("PinKey(%q) = %q, %v, want %q", id, got, err, want)
			}
		}
		pin(w.Store, "", "")
		pin(w.Other, "", "")
		ids := []string{"aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"}
		got := make([]string, len(ids))
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() {
				s := []store.Store{w.Store, w.Other}[i%2]
				var err error
				if got[i], err = s.Pin(w.ctx, "key", id); err != nil {
					w.Errorf("PinKey: %v", err)
				}
			})
		}
		wg.Wait()
		first := got[0]
		if !slices.Contains(ids, first) {
			w.Errorf("pinned = %q, want one of %v", first, ids)
		}
		for i, id := range ids {
			if got[i] != first {
				w.Errorf("%s learns of %q, the first of %q", id, got[i], first)
			}
			pin(w.Other, id, first)
		}
		pin(w.Store, "", first)
	}},
	{name: "history/the first mark stays", why: "rows without a tag are refused from one run on, which nobody may move", run: func(w *world) {
		pin := func(s store.Store, mark, want string) {
			w.Helper()
			if got, err := s.Pin(w.ctx, "history", mark); got != want || err != nil {
				w.Errorf("PinHistory(%q) = %q, %v, want %q", mark, got, err, want)
			}
		}
		pin(w.Store, "", "")
		pin(w.Store, "one", "one")
		pin(w.Other, "two", "one")
		pin(w.Other, "", "one")
		if key, err := w.Store.Pin(w.ctx, "key", ""); key != "" || err != nil {
			w.Errorf("PinKey = %q, %v after a mark was pinned, want none", key, err)
		}
	}},
	{name: "leave/ends a membership at once", why: "a planned stop must not cost others a lease", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 2)
		w.land(a.writers[0], end(ids[0], 1, status.RunSucceeded))
		if err := w.Store.Leave(w.ctx, a.id); err != nil {
			w.Fatal(err)
		}
		if _, err := w.Store.Tick(w.ctx, a.id, time.Hour, 1); !errors.Is(err, store.ErrLapsed) {
			w.Errorf("tick: err = %v, want ErrLapsed", err)
		}
		if _, err := a.writers[0].Commit(w.ctx, []store.Transition{next(ids[1], 1)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("commit: err = %v, want ErrFenced", err)
		}
		if got, err := IDs(w.Other.Runs(w.ctx, Orphans(0, 10))); err != nil || !slices.Equal(got, ids[1:]) {
			w.Errorf("orphans = %v, err = %v, want %v", got, err, ids[1:])
		}
		if got := w.tick(b); !slices.Equal(got.Dead, []store.EngineID{a.id}) {
			w.Errorf("dead = %v, want %d", got.Dead, a.id)
		}
		if err := w.Store.Leave(w.ctx, a.id); err != nil {
			w.Errorf("leave twice: %v", err)
		}
	}},
	{name: "leave/an engine that owns nothing is forgotten", why: "the table of members must not grow with every start", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		id := w.started(a, 1)[0]
		w.bury(a)
		take := next(id, 1)
		take.Owner = &b.id
		w.land(b.writers[0], take)
		w.bury(a)
		c := w.join(w.Store, 1)
		if err := w.Store.Leave(w.ctx, c.id); err != nil {
			w.Fatal(err)
		}
		if got := w.tick(b); len(got.Dead) != 0 {
			w.Errorf("dead = %v, want nobody", got.Dead)
		}
	}},
}

// fenceWaits checks that Fence does not return while a batch of n transitions is in flight,
// and that the store commits the batch.
func (w *frame) fenceWaits(n int) {
	w.Helper()
	a := w.join(w.Store, 1)
	ids := w.started(a, n)
	var batch []store.Transition
	for _, id := range ids {
		batch = append(batch, next(id, 1))
	}
	wait, release := w.Hold(w.T, ids[n-1], 1)
	landed := w.landLater(a.writers[0], batch...)
	wait(1)
	w.Expire(w.T, a.id)
	fenced := make(chan error, 1)
	go func() {
		dead, err := w.Other.Fence(w.ctx, a.id)
		if err == nil && !dead {
			err = errors.New("not dead")
		}
		fenced <- err
	}()
	wait(2) // now the batch waits until release is called, and Fence waits for the batch
	select {
	case err := <-fenced:
		w.Errorf("fence returned (%v) while a batch was in flight", err)
	default:
	}
	release()
	landed()
	if err := <-fenced; err != nil {
		w.Errorf("fence: %v", err)
	}
	for _, id := range ids {
		w.wantRows(id, 2)
	}
}
