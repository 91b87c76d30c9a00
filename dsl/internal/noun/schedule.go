package noun

import (
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/selection"
)

// A Schedule is a schedule block of a workflow. It starts runs at the times of its timetable.
type Schedule struct {
	cron.Schedule
	// Variables are the values that the schedule gives to variables of the workflow.
	Variables []Assignment
	// Select says which rows start runs at a tick; nil = each tick starts one run. With a Select,
	// Variables is nil, and Select.Assign returns the values for each row.
	Select *Selection
}

// A Selection is the select block of a schedule. Its functions are pure and safe for concurrent use.
type Selection struct {
	selection.Selection
	// Assign returns the values that a row gives to variables of the workflow. The row is a JSON
	// object with a value for each column.
	Assign func(row []byte) ([]Assignment, error)
	// Keep reports whether a row starts a run; nil = each row does.
	Keep func(row []byte) (bool, error)
}
