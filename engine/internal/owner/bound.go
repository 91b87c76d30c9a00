package owner

import (
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A check holds the values on which the next check of a run's row depends.
type check struct {
	at       time.Time     // store time of the record
	due      time.Time     // the state's next due time
	hasDue   bool          // false: the run waits for no time
	inFlight func() bool   // reports whether an attempt is running; asked only if needed
	floor    time.Duration // the shortest timeout of the workflow; 0 = not known
	final    bool
}

// bound returns the value of next_check that the row should hold: a lower
// bound of the due time, so that a scan of the rows never misses a run. While
// an attempt is in flight it is lower than needed by the shortest timeout, so
// that what follows rarely has to lower it.
func (c check) bound() time.Time {
	switch {
	case c.final || !c.hasDue:
		return store.Never
	case c.floor > 0 && c.at.Add(c.floor).Before(c.due) && c.inFlight():
		return c.at.Add(c.floor)
	}
	return c.due
}

// next returns the bound that a record must write, or zero if the row may keep
// the present one. It is written iff the record creates, ends or takes over
// the run (must), or something is due earlier than the present bound, or the
// present bound has passed, or nothing timed is waited for any more: that tells
// a run at rest from one that time still moves (Head.AtRest).
func (c check) next(present time.Time, must bool) time.Time {
	early := c.hasDue && !c.final && c.due.Before(present)
	rests := !c.hasDue && present.Before(store.Never)
	if !must && !early && !rests && present.After(c.at) {
		return time.Time{}
	}
	// Stores keep microseconds; rounded down it stays a lower bound.
	return c.bound().Truncate(time.Microsecond)
}

// raised returns the bound for a run whose bound has passed without anything
// being due. Nothing is about to follow, so it is not lowered by the floor:
// otherwise a long attempt would be visited once in every floor.
func (c check) raised() time.Time {
	c.floor = 0
	return c.bound().Truncate(time.Microsecond)
}

// newCheck returns the values on which the run's bound depends, after the records.
func newCheck(r *ownedRun, before status.RunState) check {
	due, has := r.state.NextDue()
	return check{
		due: due, hasDue: has, floor: r.wf.Shortest,
		inFlight: r.state.InFlight,
		final:    r.state.Status().Final() && !before.Final(),
	}
}
