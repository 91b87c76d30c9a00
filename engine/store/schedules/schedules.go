// Package schedules is the role of a store that keeps published workflows and the schedules that
// start their runs.
//
// In: the published definition of each workflow, and the next tick of each schedule. Out: the same,
// and which schedules are due. If two engines change the same version of a schedule, the store
// accepts only the first change. The package parses no cron expression and starts no run.
package schedules

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A Store is a store that keeps published workflows and their schedules. The role is optional. A
// store without this role cannot publish a workflow.
type Store interface {
	// Publish stores the published definition of a workflow, in place of the former one. It removes
	// the schedules of the workflow that are not in the parameter `rows`. It stores Row.Next for a
	// new schedule, and for a schedule whose Timetable has changed. A schedule with the same
	// Timetable keeps its next tick. Every schedule keeps Last, LastRun and Paused. Publish makes
	// all these changes, or none of them.
	Publish(ctx context.Context, w Workflow, rows []Row) error
	// Withdraw removes a published workflow and its schedules. It reports whether the workflow was
	// published. Runs of the workflow continue.
	Withdraw(ctx context.Context, workflow string) (bool, error)
	// ReplaceGiven replaces Workflow.Given of a published workflow, but only if the stored value
	// equals the parameter `old`. It reports whether it has replaced the value.
	ReplaceGiven(ctx context.Context, workflow string, old, given []byte) (bool, error)
	// Published returns the published workflows, in the order of their names.
	Published(ctx context.Context) ([]Workflow, error)
	// Schedules returns schedules that are not paused and whose next tick is before the given time,
	// the earliest first. If the time is zero, Schedules returns all schedules, also paused ones,
	// in the order of workflow and name. It returns no more schedules than the parameter `limit`
	// says.
	Schedules(ctx context.Context, before time.Time, limit int) ([]Row, error)
	// Move replaces Next, Last, LastRun and Paused of each schedule whose stored version equals
	// Row.Version, and changes no other schedule. It makes all these changes in one commit, or none
	// of them. It returns how many schedules it has changed. Each call of Move or Publish that
	// writes a schedule increases the version of the schedule.
	Move(ctx context.Context, rows ...Row) (int, error)
}

// A Workflow is a published workflow.
type Workflow struct {
	Name string
	ID   store.WorkflowID // the workflow in the published definition
	At   time.Time        // time of the publication, by the store's clock; the store sets it
	By   string           // person who published it; only for display
	// Given holds the values of deployment variables, encoded by the caller; it may be sealed. The
	// store does not decode it.
	Given []byte
	// Variables describes the variables of the workflow in JSON, for programs that submit runs with
	// SQL: a list of objects with name, type, required, nullable, sensitive and rules. A rule is an
	// object with check and message, see package dsl/internal/rule. Only stores with the role
	// intake.Store keep Variables. Published does not return them.
	Variables []byte
	// Sinks holds the agent actions to which replies of the runs can go, such as agent:shop.told;
	// nil = not known. Only stores with the role intake.Store keep Sinks. Published does not return
	// them.
	Sinks []string
	// UniqueVariable is the variable whose value is the unique key of a run; "" = there is none, or
	// it is not known. Only stores with the role intake.Store keep UniqueVariable. Published does
	// not return it.
	UniqueVariable string

	Events []string // types of the events that start runs of the workflow
}

// A Row is a schedule of a published workflow. Times are whole microseconds.
type Row struct {
	Workflow  string
	Name      string
	Timetable string           // text from which Next is computed; if it has changed, Publish stores Next
	Next      time.Time        // next tick; store.Never = none
	Last      time.Time        // last tick that started a run; zero = none yet
	LastRun   string           // public id of that run; "" = none yet
	Paused    bool             // true = the schedule starts no run
	Version   int64            // number of times that the row was written; the store sets it
	ID        store.WorkflowID // Workflow.ID of the published workflow; the store sets it
	Given     []byte           // Workflow.Given of the published workflow; the store sets it
}

// Of returns the optional role Store of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Store, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Store)
	return role, ok
}
