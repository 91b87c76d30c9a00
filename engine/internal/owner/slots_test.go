package owner

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
)

// oneSlot is a Capacity with at most one free slot.
type oneSlot struct {
	plenty
	free int
}

func (s *oneSlot) Slot(invoke.AgentSpec) machine.Slot { return machine.Slot{Free: s.free} }

// S71: each free slot goes to the first run in line: the earliest rank, and of equal ranks the run that
// came first. So a step with a higher priority comes earlier, and no step is overtaken by one that began
// to wait the distance of their priorities times line.PerPoint later.
func TestS71SlotsGoByPriority(t *testing.T) {
	type step struct {
		since    time.Time
		priority int
		joined   int
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		slot := &oneSlot{}
		waiting := map[status.RunID]step{}
		var told []status.RunID
		q := newSlotQueue(slot, func(run status.RunID, _ string) { told = append(told, run) })
		spec := invoke.AgentSpec{Key: "a"}
		now, next := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), status.RunID(1)
		join := func(run status.RunID, s step) {
			waiting[run] = s
			q.wait(run, spec, urgency{line.Line{Lift: int32(s.priority - line.DefaultPriority)}.Rank(s.since), s.priority})
		}
		for n := range 300 {
			now = now.Add(time.Duration(rng.IntN(20)) * time.Second)
			switch rng.IntN(5) {
			case 0, 1:
				join(next, step{now, rng.IntN(11) * 10, n})
				next++
			case 2: // another step of a run in line has become the first of its run
				for run, s := range waiting {
					s.priority = rng.IntN(101)
					join(run, s)
					break
				}
			default:
				slot.free, told = 1, nil
				q.Free("a")
				slot.free = 0
				q.decided("a")
				if len(told) != min(1, len(waiting)) {
					t.Fatalf("seed %d: %d runs were told that a slot is free, and %d wait", seed, len(told), len(waiting))
				}
				if len(told) == 0 {
					continue
				}
				first := waiting[told[0]]
				delete(waiting, told[0])
				for run, s := range waiting {
					late := first.since.Sub(s.since)
					bound := time.Duration(first.priority-s.priority) * line.PerPoint
					if late > bound || late == bound && first.joined > s.joined {
						t.Fatalf("seed %d: a step with priority %d that began to wait %s later overtakes run %d with %d", seed, first.priority, late, run, s.priority)
					}
				}
			}
			most := 0
			for _, s := range waiting {
				most = max(most, s.priority)
			}
			if q.highest("a") != most || q.Waiting() != len(waiting) {
				t.Fatalf("seed %d: highest priority %d of %d runs, want %d of %d", seed, q.highest("a"), q.Waiting(), most, len(waiting))
			}
		}
	}
}

// When no call can start before a known time, the runs in line are told in their order.
func TestLineIsDismissedInOrder(t *testing.T) {
	var told []status.RunID
	q := newSlotQueue(&oneSlot{}, func(run status.RunID, _ string) { told = append(told, run) })
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for run, p := range []int{10, 90, 50} {
		q.wait(status.RunID(run), invoke.AgentSpec{Key: "a"}, urgency{line.Line{Lift: int32(p - line.DefaultPriority)}.Rank(at), p})
	}
	q.dismiss("a")
	if len(told) != 3 || told[0] != 1 || told[1] != 2 || told[2] != 0 || q.Waiting() != 0 || q.highest("a") != 0 {
		t.Errorf("told %v, and %d still wait", told, q.Waiting())
	}
}
