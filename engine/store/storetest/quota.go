package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

func hasQuota(h Harness) bool { _, ok := quota.Of(h.Store); return ok }

var quotaRules = []rule{
	{name: "quota/no more slots than the limit", why: "the limit of an agent holds over all engines of a database, also if they ask at the same moment", run: func(w *world) {
		const most = 7
		var (
			wg  sync.WaitGroup
			got = make([]int, 8)
		)
		for i := range got {
			a := w.join(storeOf(w, i), 1)
			wg.Go(func() {
				got[i] = shareSlots(w, storeOf(w, i), a, quota.SlotAsk{Limit: "l", Most: most, Want: 3, Keep: time.Hour}).Slots
			})
		}
		wg.Wait()
		sum := 0
		for _, n := range got {
			sum += n
		}
		if sum != most {
			w.Errorf("the engines hold %v: %d slots together, want %d", got, sum, most)
		}
		if s := shareSlots(w, w.Store, w.join(w.Store, 1), quota.SlotAsk{Limit: "other", Most: 2, Want: 2, Keep: time.Hour}); s.Slots != 2 {
			w.Errorf("another limit gives %+v", s)
		}
	}},
	{name: "quota/slots given back go to others", why: "an idle engine must not keep slots that others need", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ask := quota.SlotAsk{Limit: "l", Most: 4, Want: 4, Keep: time.Hour}
		if s := shareSlots(w, w.Store, a, ask); s.Slots != 4 || s.Contended {
			w.Fatalf("the first engine got %+v", s)
		}
		if s := shareSlots(w, w.Other, b, ask); s.Slots != 0 || s.Fair != 2 {
			w.Fatalf("the second engine got %+v while the first one holds all", s)
		}
		ask.Reserve = 4
		s := shareSlots(w, w.Store, a, ask)
		if s.Slots != 4 || s.Fair != 2 || !s.Contended {
			w.Fatalf("the first engine keeps %+v, want 4 slots and the news that 2 are its part", s)
		}
		ask.Reserve = 3 // one call has ended
		if s := shareSlots(w, w.Store, a, ask); s.Slots != 3 {
			w.Errorf("the first engine gave one slot back and has %+v", s)
		}
		ask.Reserve = 0
		if s := shareSlots(w, w.Other, b, ask); s.Slots != 1 {
			w.Errorf("the second engine got %+v, want the slot that is free", s)
		}
		shareSlots(w, w.Store, a, quota.SlotAsk{Limit: "l", Most: 4, Keep: time.Hour}) // gives everything back
		ask.Reserve = 1
		if s := shareSlots(w, w.Other, b, ask); s.Slots != 4 || s.Contended {
			w.Errorf("the second engine got %+v, want everything", s)
		}
	}},
	{name: "quota/slots of a dead engine count until their calls are over", why: "the calls of a dead engine may still run, and its slots must not be lost for ever", run: func(w *world) {
		a, b, c := w.join(w.Store, 1), w.join(w.Store, 1), w.join(w.Other, 1)
		shareSlots(w, w.Store, a, quota.SlotAsk{Limit: "l", Most: 2, Want: 1, Keep: time.Hour, Linger: time.Hour})
		shareSlots(w, w.Store, b, quota.SlotAsk{Limit: "l", Most: 2, Want: 1, Keep: time.Millisecond, Linger: time.Millisecond})
		w.bury(a)
		w.bury(b)
		for _, dead := range []actor{a, b} {
			if _, err := sharerOf(w, w.Store).ShareSlots(w.ctx, dead.id, quota.SlotAsk{Limit: "l", Most: 2, Want: 1}); !errors.Is(err, store.ErrFenced) {
				w.Errorf("a dead engine gets err = %v, want ErrFenced", err)
			}
			if _, err := sharerOf(w, w.Store).TakeCalls(w.ctx, dead.id, quota.CallAsk{Limit: "l", Most: 2, Per: time.Hour, Want: 1}); !errors.Is(err, store.ErrFenced) {
				w.Errorf("a dead engine gets err = %v, want ErrFenced", err)
			}
		}
		ask := quota.SlotAsk{Limit: "l", Most: 2, Want: 2, Keep: time.Hour}
		for start := time.Now(); ; ask.Reserve = 1 {
			s := shareSlots(w, w.Other, c, ask)
			if s.Slots > 1 {
				w.Fatalf("a living engine has %+v: the slot of a call that may still run went to another call", s)
			}
			if s.Slots == 1 {
				break
			}
			if time.Since(start) > time.Minute {
				w.Fatal("the slot of a dead engine does not come back")
			}
		}
	}},
	{name: "quota/no more calls in a period than the limit", why: "the rate of calls holds over all engines of a database", run: func(w *world) {
		const most = 7
		var (
			wg  sync.WaitGroup
			got = make([]quota.CallGrant, 8)
		)
		ask := quota.CallAsk{Limit: "l", Most: most, Per: time.Hour, Want: 3, Valid: time.Second}
		for i := range got {
			a := w.join(storeOf(w, i), 1)
			wg.Go(func() { got[i] = takeCalls(w, storeOf(w, i), a, ask) })
		}
		wg.Wait()
		sum := 0
		for _, g := range got {
			sum += g.Calls
			if g.Calls < 3 && (g.Wait <= 50*time.Minute || g.Wait > 2*time.Hour) {
				w.Errorf("an engine that got %d of 3 calls is to wait %s, want about an hour", g.Calls, g.Wait)
			}
		}
		if sum != most {
			w.Errorf("the engines may start %d calls, want %d", sum, most)
		}
	}},
	{name: "quota/calls that were not used come back", why: "an engine takes calls in advance, and the limit must not shrink by that", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ask := quota.CallAsk{Limit: "l", Most: 5, Per: time.Hour, Want: 5, Valid: 10 * time.Minute}
		g := takeCalls(w, w.Store, a, ask)
		if g.Calls != 5 {
			w.Fatalf("the first engine got %+v", g)
		}
		if g := takeCalls(w, w.Other, b, ask); g.Calls != 0 {
			w.Fatalf("the second engine got %+v", g)
		}
		ask.Want, ask.Usage = 0, quota.Usage{Until: g.Until, Calls: g.Calls, Used: 2, Spare: 5 * time.Minute}
		takeCalls(w, w.Store, a, ask)
		takeCalls(w, w.Store, a, ask) // the repetition does not give the same calls back twice
		ask.Want, ask.Usage = 5, quota.Usage{}
		if g := takeCalls(w, w.Other, b, ask); g.Calls != 3 {
			w.Errorf("the second engine got %+v, want the 3 calls that the first one did not use", g)
		}
	}},
	{name: "quota/calls are free again after the period", why: "a limit that has passed must not stop an agent", run: func(w *world) {
		a := w.join(w.Store, 1)
		ask := quota.CallAsk{Limit: "l", Most: 2, Per: 64 * time.Millisecond, Want: 3}
		start, total := time.Now(), 0
		for total < 6 {
			total += takeCalls(w, w.Store, a, ask).Calls
			if time.Since(start) > time.Minute {
				w.Fatalf("%d calls in a minute, want 6", total)
			}
		}
		if took := time.Since(start); took < 128*time.Millisecond-time.Millisecond {
			w.Errorf("6 calls in %s: 2 are allowed in 64ms", took)
		}
	}},
}

// sharerOf returns the role quota.Sharer of a store.
func sharerOf(w *world, s store.Full) quota.Sharer {
	w.Helper()
	role, ok := quota.Of(s)
	if !ok {
		w.Fatal("the store does not divide limits")
	}
	return role
}

// storeOf returns the store for the engine with the number `i`: engines with even numbers use
// w.Store, and the others use w.Other.
func storeOf(w *world, i int) store.Full { return []store.Full{w.Store, w.Other}[i%2] }

// shareSlots asks for slots. The test fails if there is an error.
func shareSlots(w *world, s store.Full, a actor, ask quota.SlotAsk) quota.SlotShare {
	w.Helper()
	share, err := sharerOf(w, s).ShareSlots(w.ctx, a.id, ask)
	if err != nil {
		w.Errorf("share slots: %v", err)
	}
	return share
}

// takeCalls asks for calls. The test fails if there is an error.
func takeCalls(w *world, s store.Full, a actor, ask quota.CallAsk) quota.CallGrant {
	w.Helper()
	grant, err := sharerOf(w, s).TakeCalls(w.ctx, a.id, ask)
	if err != nil {
		w.Errorf("take calls: %v", err)
	}
	return grant
}
