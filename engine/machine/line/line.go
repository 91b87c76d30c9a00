// Package line orders the runs that wait for a place. In: the priority of a run, and the time at
// which the run was accepted. Out: the rank of the run. The package is pure.
package line

import "time"

// DefaultPriority is the priority of a run whose workflow sets no priority.
const DefaultPriority = 50

// PerPoint is how long a run must wait to rise by one point of priority. So no run can be overtaken
// for ever. Example: a run with priority 0 is overtaken by runs with priority 100 that were
// accepted up to 10 minutes (100 times 6s) after it. No run that was accepted even later overtakes
// it.
const PerPoint = 6 * time.Second

// A Line holds what decides when a run gets a place: its priority, and the limit that it shares
// with other runs. The zero Line belongs to a run with the default priority and without a limit.
type Line struct {
	Lift  int32  // priority of the run, minus DefaultPriority
	Limit int32  // largest number of open runs that are admitted under the key; 0 = no limit
	Key   string // runs of the workflow with the same key share one limit
}

// Priority returns the priority of the run, from 0 to 100.
func (l Line) Priority() int { return int(l.Lift) + DefaultPriority }

// Rank returns the rank of a run that was accepted at the time in the parameter `accepted`. The run
// with the earliest rank is the next. A run that waits rises by one point of priority in each
// PerPoint. All runs rise equally fast, so their order never changes, and the rank does not depend
// on the present time. So a store can keep the rank in an index. The result has whole microseconds.
func (l Line) Rank(accepted time.Time) time.Time {
	return accepted.Add(-time.Duration(l.Priority()) * PerPoint).Truncate(time.Microsecond)
}
