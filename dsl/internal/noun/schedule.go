package noun

import "github.com/saga-engine/engine/dsl/cron"

// A Schedule is a schedule block of a workflow. It starts runs at the times of its timetable.
type Schedule struct {
	cron.Schedule
	// Variables are the values that the schedule gives to variables of the workflow.
	Variables []Assignment
}
