// Package refusal has the errors that say why an engine refuses a submission or a publication.
// Nothing is stored after a refusal.
//
// Find these errors with errors.As: the functions of package engine wrap them. Package engine has
// an alias for each.
package refusal

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/engine/store/goals"
)

// A KeyError says why a submission was refused: another run holds its unique key. There are three
// reasons. The first is that on_conflict is "reject". The second is that on_conflict is "replace",
// but that run has ended and still holds the key, for example because it has reached the goal. The
// third is that the submission would attach to that run, but retention has removed the run.
type KeyError struct {
	Workflow, Key string
	Run           string      // public name of the run that holds the key
	Gone          bool        // retention has removed the run
	State         goals.State // a state of package goals, such as goals.Open; "" = not known
	Ever          bool        // the workflow allows one run for each key, for ever
}

// Error names the run that holds the key, and says what to do.
func (e *KeyError) Error() string {
	of := fmt.Sprintf("key %q of workflow %q", e.Key, e.Workflow)
	where := fmt.Sprintf("`engine show %s` shows it", e.Run)
	if e.Gone {
		where = "retention has removed that run"
	}
	switch {
	case e.Ever && (e.State == goals.Reached || e.State == goals.Used):
		return fmt.Sprintf("the workflow allows one run for each key, for ever, and run %s had the %s: %s", e.Run, of, where)
	case e.State == goals.Reached:
		return fmt.Sprintf("the goal of %s is reached: run %s has succeeded, and %s. To allow another run: engine goal reset %s %s --reason TEXT",
			of, e.Run, where, e.Workflow, shellWord(e.Key))
	case e.State == goals.NeedsPerson:
		return fmt.Sprintf("run %s holds the %s and needs a person: `engine explain %s` says what to do", e.Run, of, e.Run)
	}
	return fmt.Sprintf("run %s holds the %s: submit it again when that run has ended, or end it: engine cancel %s", e.Run, of, e.Run)
}

// shellWord returns a text in quotes, as a shell needs it.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// A FullError says why a submission was refused. The workflow has as many open runs as its
// concurrency block allows, and the block has when_full = "reject".
type FullError struct {
	Workflow, Key string // Key is "" if the workflow has one limit for all its runs
	Limit         int
	Open          []string // names of runs that hold a place; at most 10
	Child         bool     // true = a step or group wanted to start the refused run
	Err           error    // the cause, naming.ErrFull
}

// Error names the open runs, and says what to do.
func (e *FullError) Error() string {
	of := fmt.Sprintf("concurrency of workflow %q", e.Workflow)
	if e.Key != "" {
		of += fmt.Sprintf(", key %q", e.Key)
	}
	open := "others"
	if len(e.Open) > 0 {
		open = strings.Join(e.Open, ", ")
	}
	then := "submit it again when one of them has ended"
	if e.Child {
		then = "catch the code no_room"
	}
	return fmt.Sprintf("there is no room in %s: %d of %d runs are open (%s): %s, or write when_full = \"queue\"",
		of, e.Limit, e.Limit, open, then)
}

// Unwrap returns the cause.
func (e *FullError) Unwrap() error { return e.Err }

// A VariableError says that a workflow cannot be published, because some variables have no valid
// value.
type VariableError struct {
	Workflow string
	Schedule string // schedule whose runs lack the values; "" = variables outside of workflows
	Err      error  // the findings
}

// Error names the workflow, the schedule and the findings.
func (e *VariableError) Error() string {
	if e.Schedule == "" {
		return fmt.Sprintf("workflow %q: %v", e.Workflow, e.Err)
	}
	return fmt.Sprintf("schedule %q of workflow %q: %v", e.Schedule, e.Workflow, e.Err)
}

// Unwrap returns the findings.
func (e *VariableError) Unwrap() error { return e.Err }

// A SelectionError says that a workflow cannot be published, because the database does not accept
// the query of a selection.
type SelectionError struct {
	Workflow string
	Schedule string // "" = the select block is in an on_event block
	OnEvent  string // name of the on_event block; "" = the select block is in a schedule
	Err      error
}

// Error names the block and the reason.
func (e *SelectionError) Error() string {
	if e.OnEvent != "" {
		return fmt.Sprintf("selection of on_event %q of workflow %q: %v", e.OnEvent, e.Workflow, e.Err)
	}
	return fmt.Sprintf("selection of schedule %q of workflow %q: %v", e.Schedule, e.Workflow, e.Err)
}

// Unwrap returns the reason.
func (e *SelectionError) Unwrap() error { return e.Err }
