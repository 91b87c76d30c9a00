package ticks

import (
	"time"

	"github.com/saga-engine/engine/dsl/cron"
)

// Late is the age at which a tick counts as missed: no engine has started its run in time.
const Late = time.Minute

// A Step is what a schedule does now. At most one of its ticks starts a run in a Step.
type Step struct {
	Tick   time.Time // tick whose run starts; zero = none
	Next   time.Time // next tick of the schedule afterwards; zero = there is none any more
	Cancel bool      // the run of the tick before is cancelled first
	Wait   bool      // nothing happens until the run of the tick before has ended; Next is not set
}

// Decide returns what a schedule does at the time now. The parameter next is its stored next tick.
// The parameter open says whether the run of the tick before has not ended. If next is in the
// future, nothing happens, and Step.Next is next.
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

// newest returns the newest tick that is not after the time now; zero = there is none within the
// last four years. It looks back by longer and longer times, so that it needs few steps for each
// timetable.
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
