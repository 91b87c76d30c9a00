package naming

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
)

// Heirs is the role of a store that records which new run has taken over the results of an ended
// run. A run has one heir at most, for as long as the store keeps the run: two heirs would undo the
// same effects twice. The commit that submits an heir checks this and records the heir
// (Names.From).
type Heirs interface {
	// Heir returns the id of the run that has taken over the results of the given run; 0 = there is
	// no such run. Retention may have removed the heir since.
	Heir(ctx context.Context, run status.RunID) (status.RunID, error)
}

// ErrNoOrigin says that a submission takes over the results of a run that does not exist any more,
// or that has not ended.
var ErrNoOrigin = errors.New("engine: the run whose results are taken over does not exist any more, or has not ended")

// A HeirError says that another run has taken over the results of the run already.
type HeirError struct {
	Run, Heir status.RunID // the ended run, and the run that has its results
}

// Error returns the message.
func (e *HeirError) Error() string {
	return fmt.Sprintf("engine: run %s has taken over the results of run %s already", RunName(e.Heir), RunName(e.Run))
}
