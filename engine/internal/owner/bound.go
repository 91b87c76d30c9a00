package owner

import (
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A check holds the values from which the next_check of a run's row is computed. Scans use
// next_check to find runs that are due.
type check struct {
	at       time.Time     // store time of the last record
	due      time.Time     // the next time at which the state changes without an event
	hasDue   bool          // false if the run waits for no time
	inFlight func() bool   // reports whether an attempt is running; called only when needed
	floor    time.Duration // the shortest timeout of the workflow; 0 = not known
	final    bool
}

// bound returns the next_check for the run's row. It is never later than the run's due
// time, so that a scan never misses a run. While an attempt is in flight, it is also never
// later than the time of the last record plus the workflow's shortest timeout. The next
// attempt cannot be due before that. So the next records rarely have to write an earlier
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

// next returns the next_check that a record must write, or zero if the row may keep its
// present one. A record writes it in these cases: it creates, ends or takes over the run
// (must); something is due earlier than the present next_check; the present next_check has
// passed; or the run waits for no time any more. The last case lets readers see which runs
// are at rest (Head.AtRest).
func (c check) next(present time.Time, must bool) time.Time {
	early := c.hasDue && !c.final && c.due.Before(present)
	rests := !c.hasDue && present.Before(store.Never)
	if !must && !early && !rests && present.After(c.at) {
		return time.Time{}
	}
	// Stores keep microseconds. next_check is rounded down, so that it is never later than the
	// due time.
	return c.bound().Truncate(time.Microsecond)
}

// raised returns a later next_check for a run whose next_check has passed although nothing
// was due. It ignores the workflow's shortest timeout. Otherwise, during a long attempt,
// scans would visit the run each time that this timeout has passed.
func (c check) raised() time.Time {
	c.floor = 0
	return c.bound().Truncate(time.Microsecond)
}

// newCheck returns the check for a run after new records were applied to its state. before
// is the run's status before these records. The caller must set the field at.
func newCheck(r *ownedRun, before status.RunState) check {
	due, has := r.state.NextDue()
	return check{
		due: due, hasDue: has, floor: r.wf.Shortest,
		inFlight: r.state.InFlight,
		final:    r.state.Status().Final() && !before.Final(),
	}
}
