package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// These are the codes of failures that this package itself reports.
const (
	// The deadline of a step, an undo or the run has passed.
	CodeDeadlineExceeded = "deadline_exceeded"
	codeNotStarted       = "not_started" // no step of the run began before the time StartBy
	CodeCancelled        = "cancelled"   // the run was cancelled
	// Several engines, one after the other, ended while they read or decided the run.
	CodeEngineLost = "engine_lost"
	CodeExpression = "expression_error" // an expression could not be evaluated
	// An outcome is unknown. If an undo fails with this code, its input depends on this outcome, or
	// a second undo could do harm.
	CodeOutcomeUnknown = "outcome_unknown"
	CodeLimit          = "limit_exceeded" // a step would have exceeded a ceiling of its run
	// A loop has made all its iterations, and `until` was never true.
	codeMaxIterations = "max_iterations"
	// The run is a child run, and its parent is being undone.
	codeUndone = "undone_by_parent"
)

// expressionMiss returns the failure of a step if an expression cannot be evaluated. The parameter
// `what` is the name of the expression in the message.
func expressionMiss(what string, err error) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeExpression, Message: what + ": " + err.Error()}
}

// limitMiss returns the failure of a step because of which the run would exceed a ceiling. The
// parameter `name` is the name of the ceiling in the option --limit. The engine does not repeat the
// step, even if an operator raises the ceiling later. So the advice in the message helps only the
// next run, or a parked run whose step a person repeats with the verb retry.
func limitMiss(name, format string, args ...any) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeLimit, Message: fmt.Sprintf(format, args...) + " (--limit " + name + "=N sets another)"}
}

// noTime returns the failure of a step whose deadline leaves no time for another attempt. The
// failure has the same code as a passed deadline, so that users find both cases under one code. The
// parameter `last` is the failure of the last attempt. Its code and message are part of the new
// message.
func noTime(last model.Miss) model.Miss {
	message := "the deadline leaves no time for another attempt; the last one ended with " + last.Code
	if last.Message != "" {
		message += ": " + last.Message
	}
	return model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: message}
}

// LostFailure returns the failure of a run that is parked because engines died while they
// read or decided it.
func LostFailure(r *model.Run) dsl.Failure {
	return dsl.Failure{Code: CodeEngineLost, Message: r.LostWhy}
}

// maxLookups is how many lookups of one outcome are tried. If none of them finds out the outcome,
// it stays unknown, and no further lookup is tried.
const maxLookups = 3

// hopeless reports whether only a person can deal with the effect that a node may have. Three
// conditions must hold. First, it is unknown whether the effect exists. Second, the step has an
// undo, and the undo needs the output of the step. Third, the engine cannot find out the output: no
// further lookup is possible, and the action is not idempotent, so the engine cannot call it again.
// If a step has no undo, hopeless returns false, because the effect stays anyway.
func hopeless(wf *dsl.Workflow, n *model.Node) bool {
	step := wf.Steps[n.Step]
	if n.Present() != status.EffectMaybe || n.Known || step.NoUndo || step.Undo == nil {
		return false
	}
	if step.Undo.Do.ByKey || !step.Undo.UsesSelf || step.Do.Idempotent {
		return false
	}
	return !step.Do.Lookup || n.Fwd.Lookups >= maxLookups
}

// The default ceilings of a run. docs/limits.md lists them.
const (
	defaultInstances   = 10_000
	defaultRecords     = 500_000
	defaultJournal     = 256 << 20
	defaultValues      = 64 << 20
	defaultCheckpoints = 64 << 20
)

// Ceilings limit the size of one run. 0 means the default. Only Decide reads the ceilings. A
// record contains the result of the decision, so an engine with other ceilings computes the
// same state from the record.
//
// A ceiling stops only forward work. If a step would exceed a ceiling, it fails with CodeLimit
// before its agent is called. Only the value that a repeat block collects is checked after the
// call. The run handles this failure like any other failure. The results of calls in flight still
// count. Undos and lookups also start above a ceiling, so that the run can still be undone.
type Ceilings struct {
	Instances int   // maximum number of instances of all for_each steps of the run together
	Records   int   // maximum number of records in the run's journal
	Journal   int64 // maximum size of the run's journal in the store, in bytes
	// Maximum total size of the values of all steps, in bytes. These are for example inputs,
	// outputs, each.values, collected values and error.data. The last checkpoint of each step
	// counts, too.
	Values int64
	// Maximum total size of all recorded checkpoints, in bytes. Each checkpoint counts with
	// its size plus checkpointCost.
	Checkpoints int64
}

// checkpointCost is the number of bytes that Ceilings.Checkpoints counts for each checkpoint
// in addition to its size.
const checkpointCost = 64

// WithDefaults returns a copy of c in which every 0 is replaced by the default.
func (c Ceilings) WithDefaults() Ceilings {
	if c.Instances == 0 {
		c.Instances = defaultInstances
	}
	if c.Records == 0 {
		c.Records = defaultRecords
	}
	if c.Journal == 0 {
		c.Journal = defaultJournal
	}
	if c.Values == 0 {
		c.Values = defaultValues
	}
	if c.Checkpoints == 0 {
		c.Checkpoints = defaultCheckpoints
	}
	return c
}

// Validate returns an error that names the first ceiling that is negative or too large; nil if
// there is none.
func (c Ceilings) Validate() error {
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"Instances", int64(c.Instances)}, {"Records", int64(c.Records)}, {"Journal", c.Journal}, {"Values", c.Values}, {"Checkpoints", c.Checkpoints},
	} {
		if n.n < 0 {
			return fmt.Errorf("%s must not be negative, as %d is", n.name, n.n)
		}
	}
	if most := model.MaxNodes - model.MaxSteps; c.Instances > most {
		return fmt.Errorf("instances must be at most %d, not %d", most, c.Instances)
	}
	return nil
}

// nodeWeight is approximately the number of bytes of memory that a node takes without its
// values.
const nodeWeight = 700
