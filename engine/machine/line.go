package machine

import (
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
)

// DefaultPriority is the priority of a run whose workflow does not say it.
const DefaultPriority = model.DefaultPriority

// A Line says how a run stands in line: its priority, and the limit that it shares with other
// runs of its workflow. The zero Line is that of a run with DefaultPriority and without a limit.
type Line = model.Line

// PointPerWait is how long a run must wait to rise by one point of priority. It bounds how long a
// run can be overtaken: a run with priority 0 is overtaken by runs with priority 100 that were
// accepted up to 100 times PointPerWait after it, which is 10 minutes, and by no later run.
const PointPerWait = 6 * time.Second

// Rank returns the place in line of a run that was accepted at the given time with the given
// priority. The run with the earliest rank is the next. A run that waits rises by one point in
// each PointPerWait. All runs rise equally fast, so their order never changes, and the rank does
// not depend on the present time. So a store can keep the rank in an index.
func Rank(accepted time.Time, priority int) time.Time {
	return accepted.Add(-time.Duration(priority) * PointPerWait)
}

// admitted lets the run start, because it has got room in its limit.
func (d *decider) admitted() {
	if !d.run.Awaits || d.run.Phase != model.PhaseForward || d.run.Finished != 0 {
		return
	}
	d.run.Awaits = false
	d.first()
}

// Admits reports whether the record lets a waiting run start. The store must commit such a
// record only if there is room.
func Admits(r Record) bool {
	return r.run != nil && r.run.Mask&model.RunAwaitsBit != 0 && !r.run.To.Awaits
}
