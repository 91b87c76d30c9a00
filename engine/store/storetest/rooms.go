package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

var roomRules = []rule{
	{name: "room/of a limit no more runs are admitted", why: "at most limit runs of a key are open and admitted at the same time", run: func(w *world) {
		a := w.join(w.Store, 1)
		first, second := w.limited(a, "eu", 2, 0, true), w.limited(a, "eu", 2, 0, true)
		w.land(a.writers[0], first)
		w.land(a.writers[0], second)
		third := w.limited(a, "eu", 2, 0, true)
		w.full(a, third)
		if _, _, err := store.LoadRun(w.ctx, w.Store, third.Run); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("refused run: err = %v, want ErrNotFound", err)
		}
		w.land(a.writers[0], w.limited(a, "us", 2, 0, true)) // another key has another limit
		p, err := w.Other.Places(w.ctx, flowName, "eu", 1)
		if err != nil || p.Taken != 2 || p.Waiting != 0 || len(p.Open) != 1 || p.Open[0] != naming.RunName(first.Run) {
			w.Errorf("places = %+v, err = %v", p, err)
		}
	}},
	{name: "room/a run that has ended in any way frees its place", why: "places are counted from rows: no counter can be wrong", run: func(w *world) {
		a := w.join(w.Store, 1)
		for _, s := range []status.RunState{status.RunSucceeded, status.RunFailed, status.RunCompensated, status.RunCancelled} {
			t := w.limited(a, "eu", 1, 0, true)
			w.land(a.writers[0], t)
			w.full(a, w.limited(a, "eu", 1, 0, true))
			w.land(a.writers[0], end(t.Run, 1, s)) // this frees the place even if Frees is false: Frees only adds a hint
		}
		t := w.limited(a, "eu", 1, 0, true)
		w.land(a.writers[0], t)
		for n, s := range []status.RunState{status.RunPaused, status.RunCompensating, status.RunParked, status.RunCompensationFailed, status.RunWaiting} {
			w.land(a.writers[0], end(t.Run, int32(n+1), s))
			w.full(a, w.limited(a, "eu", 1, 0, true)) // an open run holds its place in each of these states
		}
	}},
	{name: "room/the line is in the order of rank and id", why: "higher priority first, and nothing starves", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		holder := w.limited(a, "eu", 1, 0, true)
		w.land(a.writers[0], holder)
		late, early, same := w.limited(a, "eu", 1, 3*time.Second, false), w.limited(b, "eu", 1, -time.Second, false), w.limited(a, "eu", 1, -time.Second, false)
		w.land(a.writers[0], late)
		w.land(b.writers[0], early)
		w.land(a.writers[0], same)
		if r, err := w.Store.Run(w.ctx, late.Run); err != nil || !r.InLine {
			w.Errorf("run = %+v, err = %v, want it in line", r, err)
		}
		if r, err := w.Store.Run(w.ctx, holder.Run); err != nil || r.InLine {
			w.Errorf("run = %+v, err = %v, want it admitted", r, err)
		}
		w.wantNext(a)
		w.wantNext(b)
		w.full(a, admit(same.Run, 1))
		w.full(a, w.limited(a, "eu", 5, -time.Hour, true)) // a new run must wait behind the runs in the line
		w.land(a.writers[0], end(holder.Run, 1, status.RunSucceeded))
		w.wantNext(a)
		w.wantNext(b, early.Run)
		w.land(b.writers[0], admit(early.Run, 1))
		w.wantNext(b)
		w.full(a, admit(same.Run, 1))
		if r, err := w.Store.Run(w.ctx, early.Run); err != nil || r.InLine {
			w.Errorf("run = %+v, err = %v, want it admitted", r, err)
		}
		w.land(b.writers[0], end(early.Run, 2, status.RunCancelled))
		w.wantNext(a, same.Run)
		w.land(a.writers[0], end(same.Run, 1, status.RunCancelled)) // the run is cancelled while it waits in line
		w.wantNext(a, late.Run)
		w.land(a.writers[0], admit(late.Run, 1))
		w.wantRows(late.Run, 2)
		if p, err := w.Store.Places(w.ctx, flowName, "eu", 10); err != nil || p.Taken != 1 || p.Waiting != 0 {
			w.Errorf("places = %+v, err = %v", p, err)
		}
	}},
	{name: "room/as many are next as there is room", why: "a large limit fills in one tick", run: func(w *world) {
		a := w.join(w.Store, 1)
		w.land(a.writers[0], w.limited(a, "eu", 3, 0, true))
		var want []status.RunID
		for n := range 4 {
			t := w.limited(a, "eu", 3, time.Duration(n)*time.Second, false)
			w.land(a.writers[0], t)
			want = append(want, t.Run)
		}
		w.wantNext(a, want[:2]...)
	}},
	{name: "room/each run has its own limit", why: "definitions with other limits share a line: a run for which there is no room stops the runs behind it", run: func(w *world) {
		a := w.join(w.Store, 1)
		w.land(a.writers[0], w.limited(a, "eu", 5, 0, true))
		w.land(a.writers[0], w.limited(a, "eu", 5, 0, true))
		var line []status.RunID
		// 2 runs are admitted. The third run in line would be the fifth admitted run, but its limit
		// is 4. So no place is free for it, and it stops the run behind it.
		for n, limit := range []int32{3, 5, 4, 9} {
			t := w.limited(a, "eu", limit, time.Duration(n)*time.Second, false)
			w.land(a.writers[0], t)
			line = append(line, t.Run)
		}
		w.wantNext(a, line[:2]...)
		strict := w.limited(a, "eu", 2, -time.Second, false)
		w.land(a.writers[0], strict)
		w.wantNext(a) // no place is free for the first run in line
		w.land(a.writers[0], end(strict.Run, 1, status.RunCancelled))
		w.wantNext(a, line[:2]...) // a run that has ended stops nothing, and its limit does not count
	}},
	{name: "room/only runs of living engines are next", why: "a run that no engine can start must not hold up the line", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		nobody := w.limited(a, "eu", 1, -2*time.Second, false)
		nobody.Owner = new(store.EngineID)
		w.land(a.writers[0], nobody)
		gone := w.limited(b, "eu", 1, -time.Second, false)
		w.land(b.writers[0], gone)
		mine := w.limited(a, "eu", 1, 0, false)
		w.land(a.writers[0], mine)
		w.wantNext(a)
		if err := w.Other.Leave(w.ctx, b.id); err != nil {
			w.Fatal(err)
		}
		w.wantNext(a, mine.Run)
	}},
	{name: "room/a takeover keeps the place", why: "the place belongs to the run, not to its owner", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		t := w.limited(a, "eu", 1, 0, true)
		w.land(a.writers[0], t)
		if err := w.Store.Leave(w.ctx, a.id); err != nil {
			w.Fatal(err)
		}
		taken := next(t.Run, 1)
		taken.Owner = &b.id
		w.land(b.writers[0], taken)
		w.full(b, w.limited(b, "eu", 1, 0, true))
		w.land(b.writers[0], end(t.Run, 2, status.RunSucceeded))
		w.land(b.writers[0], w.limited(b, "eu", 1, 0, true))
	}},
	{name: "room/an admission without a place is refused", why: "only a submission sets the limit of a run", run: func(w *world) {
		a := w.join(w.Store, 1)
		t := w.limited(a, "eu", 1, 0, true)
		t.Names = nil
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{t}); err != nil || out[0].Err == nil {
			w.Errorf("a limit without a submission: %+v, err = %v", out, err)
		}
		for _, bad := range []naming.Room{{Workflow: flowName, Rank: base}, {Workflow: flowName, Limit: 1}, {Limit: 1, Rank: base}, {Workflow: flowName, Key: "a\x00", Limit: 1, Rank: base}} {
			t := w.limited(a, "eu", 1, 0, false)
			t.Room = &bad
			if out, err := a.writers[0].Commit(w.ctx, []store.Transition{t}); err != nil || out[0].Err == nil {
				w.Errorf("room %+v: %+v, err = %v", bad, out, err)
			}
		}
		id := w.started(a, 1)[0]
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{admit(id, 1)}); err != nil || out[0].Err == nil || errors.Is(out[0].Err, naming.ErrFull) {
			w.Errorf("an admission of a run without a limit: %+v, err = %v", out, err)
		}
	}},
	{name: "room/an admission obeys the fence and the number of its row", why: "an engine that was declared dead admits nothing", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		t := w.limited(a, "eu", 2, 0, false)
		w.land(a.writers[0], t)
		w.land(a.writers[0], next(t.Run, 1))
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{admit(t.Run, 1)}); err != nil || !errors.Is(out[0].Err, store.ErrStale) {
			w.Errorf("a row that exists: %+v, err = %v, want ErrStale", out, err)
		}
		if r, err := w.Store.Run(w.ctx, t.Run); err != nil || !r.InLine {
			w.Errorf("run = %+v, err = %v, want it still in line", r, err)
		}
		if err := w.Store.Leave(w.ctx, a.id); err != nil {
			w.Fatal(err)
		}
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{admit(t.Run, 2)}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("an engine that left: %+v, err = %v, want ErrFenced", out, err)
		}
		w.land(b.writers[0], admit(t.Run, 2))
	}},
	{name: "room/engines that admit at the same moment keep the limit", why: "the rows are counted under a lock of the key", run: func(w *world) {
		const limit, each = 3, 8
		actors := []actor{w.join(w.Store, 1), w.join(w.Other, 1), w.join(w.Store, 1)}
		line := make([][]store.Transition, len(actors))
		for i, a := range actors {
			for range each {
				t := w.limited(a, "eu", limit, 0, false)
				w.land(a.writers[0], t)
				line[i] = append(line[i], admit(t.Run, 1))
			}
		}
		var wait sync.WaitGroup
		landed := make([]int, len(actors))
		errs := make([]error, len(actors))
		for i, a := range actors {
			wait.Go(func() {
				for _, t := range line[i] {
					out, err := a.writers[0].Commit(w.ctx, []store.Transition{t})
					switch {
					case err != nil:
						errs[i] = err
					case out[0].Landed:
						landed[i]++
					case !errors.Is(out[0].Err, naming.ErrFull):
						errs[i] = fmt.Errorf("outcome %+v", out[0])
					}
				}
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil || landed[0]+landed[1]+landed[2] != limit {
			w.Errorf("admitted %v of a limit of %d, err = %v", landed, limit, err)
		}
	}},
	{name: "room/in one batch with other rows", why: "a full limit must not hold up the rows of other runs", run: func(w *world) {
		a := w.join(w.Store, 1)
		w.land(a.writers[0], w.limited(a, "eu", 1, 0, true))
		plain := w.started(a, 1)[0]
		waits := w.limited(a, "eu", 1, 0, false)
		w.land(a.writers[0], waits)
		fresh := w.limited(a, "us", 1, 0, true)
		batch := []store.Transition{next(plain, 1), admit(waits.Run, 1), fresh, w.limited(a, "eu", 1, 0, true)}
		slices.SortFunc(batch, func(x, y store.Transition) int { return int(x.Run - y.Run) })
		out, err := a.writers[0].Commit(w.ctx, batch)
		if err != nil {
			w.Fatal(err)
		}
		for i, t := range batch {
			want := t.Run == plain || t.Run == fresh.Run
			if out[i].Landed != want || !want && !errors.Is(out[i].Err, naming.ErrFull) {
				w.Errorf("run %d: %+v", t.Run, out[i])
			}
		}
	}},
}

// limited returns the first transition of a run with a limit. The rank of the run is the time
// `base` plus `after`. If `admit` is false, the run waits in line.
func (w *world) limited(a actor, key string, limit int32, after time.Duration, admit bool) store.Transition {
	t := w.create(a)
	t.Names = &naming.Names{Workflow: flowName}
	t.Room = &naming.Room{Workflow: flowName, Key: key, Limit: limit, Rank: base.Add(after)}
	t.Admit = admit
	return t
}

// admit returns a transition that admits a run which waits in line.
func admit(run status.RunID, seq int32) store.Transition {
	t := next(run, seq)
	t.State, t.Admit = status.RunRunning, true
	return t
}

// full commits a transition, and checks that the outcome is ErrFull.
func (w *world) full(a actor, t store.Transition) {
	w.Helper()
	if out, err := a.writers[0].Commit(w.ctx, []store.Transition{t}); err != nil || out[0].Landed || !errors.Is(out[0].Err, naming.ErrFull) {
		w.Errorf("run %d: %+v, err = %v, want ErrFull", t.Run, out, err)
	}
}

// wantNext checks which runs of an engine are next in line and can get a place now.
func (w *world) wantNext(a actor, want ...status.RunID) {
	w.Helper()
	tick, err := w.Store.Tick(w.ctx, a.id, time.Hour, 10)
	if err != nil || !slices.Equal(tick.Next, want) {
		w.Errorf("next of engine %d = %v, err = %v, want %v", a.id, tick.Next, err, want)
	}
}
