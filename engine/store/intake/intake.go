// Package intake is the role of a store that takes submissions of other programs. A program writes
// a submission in its own transaction. Engines start a run for each submission.
//
// In: committed submissions. Out: the submissions that no engine has accepted or refused yet,
// oldest first. The package starts no run.
package intake

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A Store is a store with submissions of other programs. The role is optional. In a store without
// this role no other program can submit a run.
type Store interface {
	// Submissions returns submissions that were neither accepted nor refused, ascending by ID. It
	// returns only those whose ID is greater than the parameter `after`, and no more of them than
	// the parameter `limit` says.
	Submissions(ctx context.Context, after int64, limit int) ([]Submission, error)
	// Accept removes submissions whose runs are in the store.
	Accept(ctx context.Context, ids ...int64) error
	// Refuse records why a submission starts no run. People see the reason in the view
	// engine.submissions. The method Submissions does not return a refused submission, unless the
	// program submits the same id again.
	Refuse(ctx context.Context, id int64, why string) error
	// RefusedSubmissions says which submissions are refused. People must look at them: the program
	// that submitted them waits for runs that do not exist.
	RefusedSubmissions(ctx context.Context) (Refusals, error)
	// FindSubmission returns the submission of the run with this public id: a submission that waits
	// or that was refused. It returns ErrNotFound if there is no such submission.
	FindSubmission(ctx context.Context, run string) (Submission, error)
}

// Refusals are the submissions that are refused.
type Refusals struct {
	Count  int        // number of refused submissions; CountLimit = there may be more
	Oldest Submission // submission that was refused first; only Run, Workflow, Refused and RefusedAt are set
}

// CountLimit is the largest number of refused submissions that RefusedSubmissions counts.
const CountLimit = 10000

// KeepFor is the shortest time for which retention keeps a refused submission.
const KeepFor = 7 * 24 * time.Hour

// A Submission is a run that another program asks for.
type Submission struct {
	ID       int64
	Run      string // public id of the run
	Workflow string // name of a workflow that was published when the program submitted the run
	Input    []byte // JSON object with values of variables
	By       string // user of the database who submitted the run
	At       time.Time
	// Where the replies of the run go, and the text that each reply repeats; "" = none.
	ReplyTo, Correlation string
	// StartBy is the time by which the first step of the run must begin; zero = there is no such
	// time.
	StartBy    time.Time
	Priority   *int             // priority of the run, from 0 to 100; nil = as the workflow says
	WorkflowID store.WorkflowID // published workflow; 0 = the workflow is not published any more
	Given      []byte           // values of deployment variables: schedules.Workflow.Given
	// Why and when an engine has refused the submission; "" and zero = it is not refused. The
	// method Submissions does not set these fields.
	Refused   string
	RefusedAt time.Time
}

// Of returns the optional role Store of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Store, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Store)
	return role, ok
}
