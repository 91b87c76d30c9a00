package noun

import (
	"time"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Repeat is the loop of a step: when it ends, and what happens after each iteration. The largest
// number of iterations is Settings.MaxIterations. If there is no such number, Until is not nil.
type Repeat struct {
	// Until reports whether the loop ends after the present iteration; nil = the loop ends after
	// Settings.MaxIterations iterations.
	Until    func(*eval.Scope) (bool, error)
	Interval func(*eval.Scope) (time.Duration, error) // pause before the next iteration; nil = no pause
	// Collect returns the value that an iteration adds to step.NAME.collected; nil = the loop
	// collects no values.
	Collect ValueFunc
}

// ValueFunc evaluates an expression and returns the result. If the evaluation fails, the error has
// a message for people.
type ValueFunc func(*eval.Scope) (value.Value, error)
