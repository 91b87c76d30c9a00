package owner

import (
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A check holds the values from which the next_check of a run is computed. The store keeps a
// next_check for each run, outside of the journal. Scans use it to find runs that are due.
type check struct {
	at       time.Time     // store time of the last record
	due      time.Time     // the earliest time that the run waits for, such as a complete-by
	hasDue   bool          // false if the run waits for no time
	inFlight func() bool   // reports whether a call of the run is in flight
	floor    time.Duration // the shortest timeout of the workflow; 0 = not known
	final    bool          // the last records have ended the run
}

// bound returns the next_check of the run; store.Never if the run has ended or waits for no time. A
// next_check is never later than the time at which the run is due, so that a scan never misses a
// run. While a call is in flight, next_check is also never later than the time of the last record
// plus the workflow's shortest timeout. If another attempt starts later, its complete-by is usually
// after this next_check. So the record that starts the attempt rarely has to write an earlier
// next_check.
func (c check) bound() time.Time {
	switch {
	case c.final || !c.hasDue:
		return store.Never
	case c.floor > 0 && c.at.Add(c.floor).Before(c.due) && c.inFlight():
		return c.at.Add(c.floor)
	}
	return c.due
}

// next returns the next_check that a record must write. It returns the zero time if the run may
// keep its present next_check, which is the parameter `present`. A record must write a new
// next_check in these cases:
//   - The record creates, ends or takes over the run. The caller says this with the parameter
//     `must`.
//   - The run is due before the present next_check.
//   - The present next_check has passed.
//   - The run waits for no time any more. The new value shows that the run is at rest
//     (Head.AtRest).
func (c check) next(present time.Time, must bool) time.Time {
	early := c.hasDue && !c.final && c.due.Before(present)
	rests := !c.hasDue && present.Before(store.Never)
	if !must && !early && !rests && present.After(c.at) {
		return time.Time{}
	}
	// Stores keep times in whole microseconds. next rounds down, so that next_check is never
	// later than the due time.
	return c.bound().Truncate(time.Microsecond)
}

// raised returns a later next_check for a run whose next_check has passed although the run was not
// due. Unlike bound, it ignores the workflow's shortest timeout. If it used this timeout, scans
// would find the run many times during a long attempt.
func (c check) raised() time.Time {
	c.floor = 0
	return c.bound().Truncate(time.Microsecond)
}

// newCheck returns the check for a run after new records were applied to its state. The parameter
// `before` is the run's status before these records. The caller must set check.at.
func newCheck(r *ownedRun, before status.RunState) check {
	due, has := r.state.NextDue()
	return check{
		due: due, hasDue: has, floor: r.wf.Shortest,
		inFlight: r.state.InFlight,
		final:    r.state.Status().Final() && !before.Final(),
	}
}
