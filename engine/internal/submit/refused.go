package submit

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
)

// Unanswered is an error of the store. The submission itself may be valid.
type Unanswered struct{ Err error }

// Error returns the text of the cause.
func (u *Unanswered) Error() string { return u.Err.Error() }

// Unwrap returns the cause.
func (u *Unanswered) Unwrap() error { return u.Err }

// mostHolders is the largest number of runs that a FullError names.
const mostHolders = 10

// fullError returns the error for a submission whose run got no place. The parameter `child` says
// whether a step or group started the run.
func fullError(ctx context.Context, s store.Store, start *owner.Start, child bool, err error) error {
	full := &refusal.FullError{Workflow: start.Flow.Name, Key: start.Line.Key, Limit: int(start.Line.Limit), Child: child, Err: err}
	p, failed := store.Complete(s).Places(ctx, full.Workflow, full.Key, mostHolders)
	if failed != nil {
		return errors.Join(full, failed)
	}
	full.Open = p.Open
	return full
}

// busy reports whether the error says that a check could not run now. If the run is submitted again
// later, the check can perhaps run.
func busy(err error) bool {
	var e *admission.Error
	return errors.As(err, &e) && e.Temporary()
}

// Refused reports whether an error of Submit is about the submission itself, so that the engine
// must refuse the submission. A *refusal.FullError is such an error, too. After any other error,
// another try or another engine may succeed.
func Refused(ctx context.Context, err error) bool {
	var (
		silent *Unanswered
		key    *crypt.KeyError
		open   *owner.OpenOutcome
	)
	return ctx.Err() == nil && !errors.Is(err, owner.ErrStopping) && !owner.OverFor(err) &&
		!busy(err) && !errors.As(err, &silent) && !errors.As(err, &key) && !errors.As(err, &open)
}
