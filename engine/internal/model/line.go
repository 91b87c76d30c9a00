package model

// DefaultPriority is the priority of a run whose workflow does not say it.
const DefaultPriority = 50

// A Line says how a run stands in line: its priority, and the limit that it shares with other
// runs. The zero Line is that of a run with the default priority and without a limit.
type Line struct {
	Lift  int32  // priority of the run, minus DefaultPriority
	Limit int32  // largest number of open runs that are admitted under the key; 0 = no limit
	Key   string // runs of the workflow with the same key share one limit
}

// Priority returns the priority of the run, from 0 to 100.
func (l Line) Priority() int { return int(l.Lift) + DefaultPriority }
