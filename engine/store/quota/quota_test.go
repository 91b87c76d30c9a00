package quota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

var base = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

// An engine of TestSlotsOfManyEngines: what it believes, and its calls.
type peer struct {
	id    store.EngineID
	limit int         // slots that it may use
	until time.Time   // time until which it may start calls
	calls []time.Time // ends of its calls
	want  int
	dead  bool
}

// However engines come, freeze and die, no more calls are in flight than the limit says, and every
// slot comes back.
func TestSlotsOfManyEngines(t *testing.T) {
	const keep, linger = 10 * time.Second, 20 * time.Second
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		most, now, next := 1+rng.IntN(12), base, store.EngineID(1)
		var table Table
		var peers []*peer
		busy := func() (n int) {
			for _, p := range peers {
				p.calls = slices.DeleteFunc(p.calls, func(end time.Time) bool { return !end.After(now) })
				n += len(p.calls)
			}
			return n
		}
		ask := func(p *peer) {
			hold := max(p.limit, len(p.calls))
			share := table.ShareSlots(p.id, SlotAsk{Limit: "a", Most: most, Reserve: hold, Want: p.want, Keep: keep, Linger: linger}, now)
			if now.Before(p.until) && share.Slots < hold {
				t.Fatalf("seed %d: engine %d holds %d and got %d", seed, p.id, hold, share.Slots)
			}
			if rng.IntN(10) == 0 {
				return // the answer is lost
			}
			p.limit, p.until = share.Slots, now.Add(keep)
			if share.Fair < share.Slots {
				p.limit = max(len(p.calls), share.Fair)
			}
		}
		for range 1500 {
			now = now.Add(time.Duration(rng.IntN(800)) * time.Millisecond)
			if len(peers) < 4 && rng.IntN(20) == 0 {
				peers = append(peers, &peer{id: next})
				next++
			}
			if busy() > most {
				t.Fatalf("seed %d: %d calls are in flight, the limit is %d", seed, busy(), most)
			}
			if len(peers) == 0 {
				continue
			}
			p := peers[rng.IntN(len(peers))]
			switch {
			case p.dead && len(p.calls) == 0:
				peers = slices.DeleteFunc(peers, func(x *peer) bool { return x == p })
			case p.dead:
			case rng.IntN(100) == 0:
				p.dead = true // its calls go on
			case rng.IntN(3) == 0:
				p.want = max(len(p.calls), rng.IntN(15))
				ask(p)
			case len(p.calls) < p.limit && now.Before(p.until):
				p.calls = append(p.calls, now.Add(time.Duration(rng.Int64N(int64(linger)))))
			}
		}
		// Every engine dies. A new one gets the whole limit when the last slots have passed.
		now = now.Add(keep + linger + time.Second)
		if share := table.ShareSlots(next, SlotAsk{Limit: "a", Most: most, Want: most, Keep: keep}, now); share.Slots != most {
			t.Fatalf("seed %d: %d slots of %d came back", seed, share.Slots, most)
		}
	}
}

// Engines that want more than there is get equal parts, and take turns where there is less than one
// slot for each. No engine waits for ever.
func TestSlotsAreDividedEqually(t *testing.T) {
	for _, tc := range []struct{ most, engines int }{{12, 3}, {13, 4}, {1, 3}, {2, 5}, {1, 2}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			var table Table
			now := base
			held, turns := make([]int, tc.engines), make([]int, tc.engines)
			for range 400 {
				now = now.Add(100 * time.Millisecond)
				for e := range held {
					// All calls are short: an engine can give back whatever is not its part.
					share := table.ShareSlots(store.EngineID(e+1), SlotAsk{Limit: "a", Most: tc.most, Reserve: held[e], Want: 100, Keep: time.Minute}, now)
					if held[e] = share.Slots; share.Fair < held[e] {
						held[e] = share.Fair
					}
					if held[e] > 0 {
						turns[e]++
					}
				}
			}
			for e, n := range held {
				if n > tc.most/tc.engines+1 {
					t.Errorf("engine %d has %d of %d slots", e+1, n, tc.most)
				}
			}
			for e, n := range turns {
				if most := slices.Max(turns); n*3 < most {
					t.Errorf("engine %d had a slot %d times, another engine %d times", e+1, n, most)
				}
			}
		})
	}
}

// A dead engine takes no turns, and its wishes do not keep slots from living ones.
func TestSlotsIgnoreTheWishesOfTheDead(t *testing.T) {
	var table Table
	a := table.ShareSlots(1, SlotAsk{Limit: "a", Most: 1, Want: 1, Keep: time.Minute}, base)
	table.ShareSlots(2, SlotAsk{Limit: "a", Most: 1, Want: 1, Keep: time.Minute}, base)
	if a.Slots != 1 {
		t.Fatalf("the first engine got %+v", a)
	}
	later := base.Add(wantFor + time.Second)
	if a = table.ShareSlots(1, SlotAsk{Limit: "a", Most: 1, Reserve: 1, Want: 1, Keep: time.Minute}, later); a.Fair != 1 || a.Contended {
		t.Errorf("a dead engine waits, and the living one gets %+v", a)
	}
}

// If engines name different limits, the smallest counts.
func TestSmallestLimitCounts(t *testing.T) {
	var table Table
	table.ShareSlots(1, SlotAsk{Limit: "a", Most: 2, Want: 2, Keep: time.Minute}, base)
	if b := table.ShareSlots(2, SlotAsk{Limit: "a", Most: 10, Want: 10, Keep: time.Minute}, base); b.Slots != 0 || b.Fair != 1 {
		t.Errorf("an engine with the limit 10 got %+v, another has the limit 2", b)
	}
}

// In no period more calls start than the limit says, whatever the engines do with their calls. And
// engines that want to call all the time use nearly the whole limit.
func TestCallsOfManyEngines(t *testing.T) {
	type grant struct {
		CallGrant
		until time.Time
		used  int
		last  time.Time
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		most, per := 1+rng.IntN(20), []time.Duration{time.Second, time.Minute, time.Hour}[rng.IntN(3)]
		valid := max(per/10, 250*time.Millisecond)
		lazy := rng.IntN(2) == 0 // engines that let calls pass unused
		var table Table
		grants := make([]grant, 3)
		var starts []time.Time
		now := base
		for range 4000 {
			now = now.Add(time.Duration(rng.Int64N(int64(per) / 40)))
			g := &grants[rng.IntN(len(grants))]
			if g.used < g.Calls && now.Before(g.until) {
				if lazy && rng.IntN(2) == 0 {
					continue
				}
				g.used++
				g.last = now
				starts = append(starts, now)
				continue
			}
			ask := CallAsk{Limit: "a", Most: most, Per: per, Want: 1 + rng.IntN(5), Valid: valid}
			if g.Calls > 0 && rng.IntN(10) > 0 {
				ask.Usage = Usage{Until: g.Until, Calls: g.Calls, Used: g.used, Spare: g.until.Sub(g.last)}
				if g.used == 0 {
					ask.Usage.Spare = 0
				}
			}
			*g = grant{CallGrant: table.TakeCalls(ask, now), until: now.Add(valid)}
			if g.Calls == 0 && g.Wait <= 0 {
				t.Fatalf("seed %d: no call and no time to wait", seed)
			}
			if n := len(table.calls["a"]); n > 4*grains {
				t.Fatalf("seed %d: %d rows", seed, n)
			}
		}
		for i := most; i < len(starts); i++ {
			if d := starts[i].Sub(starts[i-most]); d < per {
				t.Fatalf("seed %d: %d calls started within %s, the limit is %d in %s", seed, most+1, d, most, per)
			}
		}
		periods := float64(now.Sub(base)) / float64(per)
		if rate := float64(len(starts)) / periods; !lazy && rate < 0.5*float64(most) {
			t.Errorf("seed %d: %.1f calls in a period of %s, the limit is %d", seed, rate, per, most)
		}
	}
}

// CallGrant.Wait is the time at which the next call is free.
func TestWaitOfCalls(t *testing.T) {
	var table Table
	ask := CallAsk{Limit: "a", Most: 2, Per: time.Minute, Want: 3, Valid: time.Second}
	g := table.TakeCalls(ask, base)
	if g.Calls != 2 || g.Wait < time.Minute || g.Wait > 63*time.Second {
		t.Fatalf("the first answer is %+v", g)
	}
	if again := table.TakeCalls(ask, base.Add(g.Wait-time.Microsecond)); again.Calls != 0 {
		t.Errorf("before the time: %+v", again)
	}
	if again := table.TakeCalls(ask, base.Add(g.Wait)); again.Calls != 2 {
		t.Errorf("at the time: %+v", again)
	}
}
