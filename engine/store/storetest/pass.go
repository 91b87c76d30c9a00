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

var passRules = slices.Concat(needed(hasQuota, quotaRules), []rule{
	{name: "pass/one of many callers", need: hasPasses, why: "however many engines there are, others' runs are looked at once in a period (S45)", run: func(w *world) {
		for _, name := range []string{"foreign", "other"} {
			var (
				wg sync.WaitGroup
				ok = make([]bool, 16)
			)
			for i := range ok {
				wg.Go(func() {
					var err error
					if ok[i], err = []store.Full{w.Store, w.Other}[i%2].Pass(w.ctx, name, time.Hour); err != nil {
						w.Errorf("pass: %v", err)
					}
				})
			}
			wg.Wait()
			n := 0
			for _, o := range ok {
				if o {
					n++
				}
			}
			if n != 1 {
				w.Errorf("%d of %d callers may make the pass %q, want 1", n, len(ok), name)
			}
		}
	}},
	{name: "pass/again after the period", need: hasPasses, why: "an engine that freezes after it was permitted costs one period, not the pass (T9)", run: func(w *world) {
		pass := func(s store.Full, name string, period time.Duration) bool {
			w.Helper()
			ok, err := s.Pass(w.ctx, name, period)
			if err != nil {
				w.Fatalf("pass: %v", err)
			}
			return ok
		}
		for period := 30 * time.Millisecond; ; period *= 2 {
			name, start := period.String(), time.Now()
			if !pass(w.Store, name, period) {
				w.Fatal("the first caller is refused")
			}
			if pass(w.Other, name, time.Hour) {
				if time.Since(start) < period-time.Millisecond {
					w.Fatalf("two permissions within %v, want at least %v", time.Since(start), period)
				}
				continue // the period was over before the second call: try a longer period
			}
			// The period begins when Pass returns true. A call of Pass that returns false does
			// not make the period longer.
			for !pass(w.Store, name, time.Hour) {
				if time.Since(start) > 10*time.Second+period {
					w.Fatalf("no permission %v after the last one, with a period of %v", time.Since(start), period)
				}
			}
			if took := time.Since(start); took < period-time.Millisecond {
				w.Errorf("two permissions within %v, want at least %v", took, period)
			}
			return
		}
	}},
	{name: "overdue/of other live engines, past the grace", why: "an engine that lives but does not do its work is a failure too (S39, S58); one's own runs and those of the dead are found in other ways", run: func(w *world) {
		a, b, c, gone := w.join(w.Store, 1), w.join(w.Other, 1), w.join(w.Other, 1), w.join(w.Other, 1)
		now := w.tick(a).Now
		late := func(x actor, run status.RunID, by time.Duration) status.RunID {
			t := next(run, 1)
			t.NextCheck = now.Add(-by)
			w.land(x.writers[0], t)
			return run
		}
		const grace = time.Minute
		late(a, w.started(a, 1)[0], time.Hour)       // not listed: engine a asks, and the run is its own
		late(gone, w.started(gone, 1)[0], time.Hour) // not listed: the lease of its owner has expired
		bs, cs := w.started(b, 5), w.started(c, 1)
		late(b, bs[0], 2*grace)
		late(b, bs[1], grace/2) // not listed: the time since next_check is shorter than grace
		late(b, bs[2], 4*grace)
		ended := end(bs[3], 1, status.RunFailed)
		ended.NextCheck = now.Add(-time.Hour)
		w.land(b.writers[0], ended)
		free := next(bs[4], 1) // a run without an owner
		free.Owner, free.NextCheck = ptr(store.EngineID(0)), now.Add(-time.Hour)
		w.land(b.writers[0], free)
		late(c, cs[0], 3*grace)
		w.Expire(w.T, gone.id)
		want := []status.RunID{bs[2], cs[0], bs[0]}
		if got, err := IDs(w.Store.Runs(w.ctx, Overdue(a.id, grace, 10))); err != nil || !slices.Equal(got, want) {
			w.Errorf("overdue = %v, err = %v, want %v", got, err, want)
		}
		if got, err := IDs(w.Store.Runs(w.ctx, Overdue(a.id, grace, 2))); err != nil || !slices.Equal(got, want[:2]) {
			w.Errorf("two overdue = %v, err = %v, want %v", got, err, want[:2])
		}
		if got, err := IDs(w.Store.Runs(w.ctx, Overdue(b.id, 2*time.Hour, 10))); err != nil || len(got) != 0 {
			w.Errorf("overdue by two hours = %v, err = %v, want none", got, err)
		}
	}},
	{name: "live/who lives, and where", why: "people must see which engine holds what, and where to find it", run: func(w *world) {
		start := w.Now(w.Store)
		ids := make([]store.EngineID, 3)
		for i := range ids {
			var err error
			if ids[i], err = w.Store.Join(w.ctx, fmt.Sprint("host:", i), time.Hour/2, 1); err != nil {
				w.Fatal(err)
			}
		}
		w.Expire(w.T, ids[1])
		live := func() []store.Member {
			w.Helper()
			got, err := w.Other.Live(w.ctx)
			if err != nil {
				w.Fatalf("live: %v", err)
			}
			return slices.DeleteFunc(got, func(m store.Member) bool { return !slices.Contains(ids, m.Engine) })
		}
		got := live()
		if len(got) != 2 || got[0].Engine != ids[0] || got[1].Engine != ids[2] || got[0].Address != "host:0" || got[1].Address != "host:2" {
			w.Fatalf("live = %+v, want the first and the third", got)
		}
		for _, m := range got {
			if m.JoinedAt.Before(start) || m.LeaseUntil.Sub(m.JoinedAt).Round(time.Minute) != time.Hour/2 {
				w.Errorf("member = %+v, want it to have joined after %v and to live half an hour", m, start)
			}
		}
		for _, m := range got {
			if m.Left <= 0 || m.Left > time.Hour/2 {
				w.Errorf("member = %+v, want a lease that is good by the store's clock", m)
			}
			if one, err := w.Other.Member(w.ctx, m.Engine); err != nil || one.Address != m.Address || !one.LeaseUntil.Equal(m.LeaseUntil) {
				w.Errorf("member %d = %+v, err = %v, want %+v", m.Engine, one, err, m)
			}
		}
		before := got[0].LeaseUntil
		w.tick(actor{id: ids[0]})
		if got := live(); len(got) != 2 || !got[0].LeaseUntil.After(before) {
			w.Errorf("after a tick: live = %+v, want the lease renewed from %v", got, before)
		}
	}},
	{name: "member/one that died, and since when", why: "people must see since when the owner of a run has been gone", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		w.Expire(w.T, a.id)
		for _, how := range []string{"its lease has passed", "it was fenced"} {
			m, err := w.Other.Member(w.ctx, a.id)
			if err != nil || m.Left > 0 || m.Engine != a.id || m.LeaseUntil.After(w.Now(w.Other)) {
				w.Errorf("%s: member = %+v, err = %v, want it dead, and since when", how, m, err)
			}
			w.bury(a)
		}
		b := w.join(w.Other, 1)
		take := end(id, 1, status.RunFailed)
		take.Owner = &b.id
		w.land(b.writers[0], take)
		w.bury(a) // the member owns no run any more, so the store removes the member
		if m, err := w.Store.Member(w.ctx, a.id); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("member = %+v, err = %v, want ErrNotFound", m, err)
		}
	}},
	{name: "nobody/a run may be submitted to nobody", why: "a detached run waits for any engine, unclaimed and whole: names and key are its own at once (S54, S55)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		c := w.create(a)
		c.State, c.Owner, c.NextCheck = status.RunQueued, ptr(store.EngineID(0)), base
		n := naming.Names{Name: "detached", Workflow: flowName, Key: "k"}
		if s := w.submit(a.writers[0], c, n); s.Exists || s.Run != c.Run {
			w.Errorf("submitted = %+v, want run %d", s, c.Run)
		}
		if s := w.submit(b.writers[0], w.create(b), n); !s.Exists || s.Run != c.Run {
			w.Errorf("submitted again = %+v, want it found", s)
		}
		if err := w.Store.Leave(w.ctx, a.id); err != nil {
			w.Fatal(err)
		}
		d := w.join(w.Store, 1)
		want := []store.DueRun{{Run: c.Run, NextCheck: base}}
		for _, x := range []actor{b, d} {
			if got := w.tick(x); !slices.Equal(got.Unowned, want) || len(got.Due) != 0 || len(got.Inbox) != 0 {
				w.Errorf("tick of engine %d = %+v, want unowned %+v", x.id, got, want)
			}
		}
		r, err := w.Other.Find(w.ctx, "detached")
		if err != nil || r.Owner != 0 || r.OwnerAlive || r.State != status.RunQueued || r.Fence != 0 {
			w.Errorf("run = %+v, err = %v, want it queued without an owner", r, err)
		}
		if got, err := IDs(w.Other.Runs(w.ctx, Overdue(d.id, 0, 10))); err != nil || len(got) != 0 {
			w.Errorf("overdue = %v, err = %v, want none: it has no engine", got, err)
		}
		take := next(c.Run, 1)
		take.Owner, take.NextCheck = &d.id, store.Never
		w.land(d.writers[0], take)
		if h, _ := w.load(c.Run); h.Owner != d.id || h.Fence != 1 {
			w.Errorf("head = %+v, want it claimed in record 1", h)
		}
		if got := w.tick(b); len(got.Unowned) != 0 {
			w.Errorf("tick = %+v, want nothing unowned", got)
		}
	}},
	{name: "nobody/many engines claim each run once", why: "whatever many engines claim at once, each run is claimed once (S55)", run: func(w *world) {
		const engines, runs, batch = 4, 120, 16
		first := w.join(w.Store, 1)
		var open []store.Transition
		for range runs {
			c := w.create(first)
			c.State, c.Owner, c.NextCheck = status.RunQueued, ptr(store.EngineID(0)), base
			open = append(open, c)
		}
		w.land(first.writers[0], open...)
		var (
			mu      sync.Mutex
			claimed = make(map[status.RunID]int)
			wg      sync.WaitGroup
		)
		for i := range engines {
			st := []store.Store{w.Store, w.Other}[i%2]
			x := w.join(st, 1)
			wg.Go(func() {
				for {
					t, err := st.Tick(w.ctx, x.id, time.Hour, batch)
					if err != nil {
						w.Errorf("tick: %v", err)
						return
					}
					if len(t.Unowned) == 0 {
						return
					}
					var take []store.Transition
					for _, d := range t.Unowned {
						c := next(d.Run, 1)
						c.State, c.Owner, c.NextCheck = status.RunRunning, &x.id, base.Add(time.Hour)
						take = append(take, c)
					}
					out, err := x.writers[0].Commit(w.ctx, sorted(take))
					if err != nil {
						w.Errorf("claim: %v", err)
						return
					}
					mu.Lock()
					for i, o := range out {
						if o.Landed {
							claimed[take[i].Run]++
						} else if !errors.Is(o.Err, store.ErrStale) {
							w.Errorf("run %d: %v, want landed or ErrStale", take[i].Run, o.Err)
						}
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(claimed) != runs {
			w.Errorf("%d runs were claimed, want %d", len(claimed), runs)
		}
		for run, n := range claimed {
			if h, _ := w.load(run); n != 1 || h.Owner == 0 || h.Fence != 1 {
				w.Errorf("run %d was claimed %d times: %+v", run, n, h)
			}
		}
	}},
	{name: "load/many are each", why: "a takeover of 100,000 runs costs what reading them does; it must read the same (S22)", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 1200)
		for seq := int32(1); seq < 4; seq++ {
			var batch []store.Transition
			for i, id := range ids {
				if i%4 >= int(seq) {
					batch = append(batch, next(id, seq))
				}
			}
			w.land(a.writers[0], batch...)
		}
		named := w.submit(a.writers[0], w.create(a), naming.Names{Name: "named", Workflow: flowName})
		big := next(named.Run, 1)
		big.Data = make([]byte, 300_000)
		w.land(a.writers[0], big)
		w.land(a.writers[0], end(named.Run, 2, status.RunSucceeded))
		ids = append(ids, named.Run)
		spoken := map[status.RunID]bool{ids[3]: true, ids[700]: true, named.Run: true}
		for id := range spoken {
			w.posted(id, 2)
		}
		ask := slices.Concat([]status.RunID{77, 1 << 60}, ids, ids[:3])
		slices.Reverse(ask)
		before := slices.Clone(ask)
		got, err := w.Other.Load(w.ctx, ask...)
		if err != nil || len(got) != len(ids) {
			w.Fatalf("%d runs, err = %v, want %d", len(got), err, len(ids))
		}
		if !slices.Equal(ask, before) {
			w.Error("the caller's list was changed")
		}
		for i, l := range got {
			if l.Head.Run != ids[i] {
				w.Fatalf("run %d stands at %d, want %d: ascending", l.Head.Run, i, ids[i])
			}
			if l.Waiting != spoken[ids[i]] {
				w.Errorf("messages wait for run %d: %t, want %t", ids[i], l.Waiting, spoken[ids[i]])
			}
			if i%97 != 0 && i != len(ids)-1 {
				if len(l.Rows) != 1+i%4 {
					w.Errorf("run %d has %d rows, want %d", l.Head.Run, len(l.Rows), 1+i%4)
				}
				continue
			}
			if head, rows := w.load(ids[i]); l.Head != head || !reflect.DeepEqual(l.Rows, rows) {
				w.Errorf("run %d = %+v with %d rows, want %+v with %d", ids[i], l.Head, len(l.Rows), head, len(rows))
			}
		}
		for name, none := range map[string][]status.RunID{"nothing": nil, "what is not there": {77}} {
			if got, err := w.Store.Load(w.ctx, none...); err != nil || len(got) != 0 {
				w.Errorf("%s: %+v, err = %v, want none", name, got, err)
			}
		}
	}},
})
