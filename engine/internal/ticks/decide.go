package ticks

import (
	"time"

	"github.com/saga-engine/engine/dsl/cron"
)

// Late is the age from which a tick counts as missed. A schedule with catch_up = "none" starts no
// run for a missed tick.
const Late = time.Minute

// A Step (this type, not a step of a workflow) says what a schedule does now. In one Step, at most
// one tick starts a run.
type Step struct {
	Tick   time.Time // tick whose run starts; zero = none
	Next   time.Time // next tick of the schedule afterwards; zero = there is none any more
	Cancel bool      // before anything else, the run of the previous tick is cancelled
	Wait   bool      // nothing happens until the run of the previous tick has ended; Next is not set
}

// Decide returns what a schedule does at the time in the parameter `now`. The parameter `next` is
// the next tick of the schedule, as it is stored. The parameter `open` is true if the run of the
// previous tick has not ended. If the stored tick is in the future, nothing happens, and Step.Next
// is the stored tick.
func Decide(s *cron.Schedule, next, now time.Time, open bool) Step {
	if next.After(now) {
		return Step{Next: next}
	}
	after := s.Timetable.Next(now)
	if open {
		switch s.Overlap {
		case cron.OverlapSkip:
			return Step{Next: after}
		case cron.OverlapQueue:
			return Step{Wait: true}
		}
	}
	tick := next
	if s.CatchUp == cron.CatchUpAll {
		after = s.Timetable.Next(tick)
	} else if newest := newest(s, now); newest.After(tick) {
		tick = newest
	}
	if s.CatchUp == cron.CatchUpNone && now.Sub(tick) >= Late {
		return Step{Next: after}
	}
	return Step{Tick: tick, Next: after, Cancel: open && s.Overlap == cron.OverlapCancel}
}

// newest returns the newest tick that is not after the time in the parameter `now`. If there is
// none within about the last four years, it returns zero. It looks back one minute, then two
// minutes, then four, and so on. So it needs few tries, whether ticks are frequent or rare.
func newest(s *cron.Schedule, now time.Time) (tick time.Time) {
	for back := time.Minute; back < 4*366*24*time.Hour; back *= 2 {
		for at := s.Timetable.Next(now.Add(-back)); !at.IsZero() && !at.After(now); at = s.Timetable.Next(at) {
			tick = at
		}
		if !tick.IsZero() {
			return tick
		}
	}
	return time.Time{}
}
