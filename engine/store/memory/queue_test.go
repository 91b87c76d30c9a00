package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// What the queues say is due is what a walk over all runs finds, whatever runs
// have been through.
func TestDueIsWhatAWalkFinds(t *testing.T) {
	s := New(Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	base := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	at := func() time.Time { return base.Add(time.Duration(rng.IntN(20)) * time.Second) }
	var runs []*run
	for step := range 5000 {
		switch n := rng.IntN(10); {
		case n < 3 || len(runs) == 0:
			r := &run{head: store.Head{Run: status.RunID(rng.Int64N(1 << 20)), State: status.RunRunning, Owner: store.EngineID(rng.IntN(3)), NextCheck: at()}}
			if s.runs[r.head.Run] != nil {
				continue
			}
			s.addLocked(r)
			runs = append(runs, r)
			s.queueLocked(r)
		case n < 5:
			r := runs[rng.IntN(len(runs))]
			r.head.State = status.RunSucceeded
			s.queueLocked(r)
		case n < 6:
			r := runs[rng.IntN(len(runs))]
			r.head.State, r.head.Owner, r.head.NextCheck = status.RunCompensating, store.EngineID(rng.IntN(3)), at()
			s.queueLocked(r)
		default:
			r := runs[rng.IntN(len(runs))]
			r.head.NextCheck = at()
			s.queueLocked(r)
		}
		if step%50 > 0 {
			continue
		}
		owner, now, limit := store.EngineID(rng.IntN(3)), at(), 1+rng.IntN(2*len(runs))
		var want []*run
		for _, r := range runs {
			if !r.head.State.Final() && r.head.Owner == owner && !r.head.NextCheck.After(now) {
				want = append(want, r)
			}
		}
		slices.SortFunc(want, func(a, b *run) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		want = want[:min(len(want), limit)]
		if got := s.open[owner].due(now, limit); !slices.Equal(got, want) {
			t.Fatalf("step %d: %d runs of engine %d are due, want %d: %v and %v", step, len(got), owner, len(want), got, want)
		}
		if !slices.IsSorted(s.order) || len(s.order) != len(runs) {
			t.Fatalf("step %d: %d runs in order, want %d", step, len(s.order), len(runs))
		}
	}
}
