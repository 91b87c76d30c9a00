package sdk

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/saga-engine/engine/sdk/internal/names"
)

// A Failure is a definite failure: the action that returns it guarantees that nothing was
// done. Any other error of an action means that the outcome is unknown.
type Failure struct {
	Code       string        // error code for the workflow; snake_case, declared with Errors or RetryableErrors
	Message    string        // text for people; "" = the text of Err
	Permanent  bool          // the call must not be repeated, even if the workflow's retry allows it
	RetryAfter time.Duration // shortest pause before the call is repeated; 0 = no minimum
	Err        error         // the cause, or nil
	// Data is what the workflow reads as step.NAME.error.data, such as the response body of the
	// remote service. nil = no data. The SDK encodes Data as JSON. If that fails, or if the JSON
	// is larger than MaxData, the SDK sends no data and writes a warning to the log.
	Data any
}

// MaxData is the largest size of the Data of a Failure, in bytes of JSON.
const MaxData = 64 << 10

// Error returns the message. If the message is empty, Error returns the text of the cause.
// If there is no cause, it returns the code.
func (f *Failure) Error() string {
	switch {
	case f.Message != "":
		return f.Message
	case f.Err != nil:
		return f.Err.Error()
	}
	return f.Code
}

// Unwrap returns the cause; nil if there is none.
func (f *Failure) Unwrap() error { return f.Err }

// document returns the data of the failure as JSON. It returns nil if there is no data, or if the
// data cannot be encoded or is too large. In the last two cases it also logs a warning.
func (f *Failure) document(c *Call) json.RawMessage {
	if f.Data == nil {
		return nil
	}
	raw, err := json.Marshal(f.Data)
	switch {
	case err != nil:
		c.Logger.Warn("the data of a failure cannot be encoded", "error", err)
		return nil
	case len(raw) > MaxData:
		c.Logger.Warn("the data of a failure are too large", "bytes", len(raw), "most", MaxData)
		return nil
	}
	return raw
}

// Code returns a definite failure with the given code if errors.Is(err, target) is true.
// Otherwise it returns err unchanged. Calls of Code may be nested: an error that already is a
// *Failure is not changed. Use Code only for errors which say that nothing was done.
func Code(err, target error, code string) error {
	if err == nil || !errors.Is(err, target) {
		return err
	}
	// Look only at err itself, not at the errors inside of err.
	if _, ok := err.(*Failure); ok { //nolint:errorlint
		return err
	}
	return &Failure{Code: code, Err: err}
}

// Unknown returns an error which says that the outcome is unknown. The parameter `code` says
// why: it is a code that the action declares, or a transient code such as CodeUnavailable. If the
// code is no valid name, such as "", the engine gets CodeAborted if err says that the context of
// the call has ended, and CodeInternal in all other cases. If err contains a *Failure, the outcome
// is unknown nevertheless. But the engine then waits at least the RetryAfter of this *Failure
// before the next attempt. Unknown returns nil if err is nil.
func Unknown(err error, code string) error {
	if err == nil {
		return nil
	}
	return &unknownError{err: err, code: code}
}

// unknownError is the error that Unknown returns.
type unknownError struct {
	err  error
	code string
}

func (u *unknownError) Error() string { return u.err.Error() }

// retryAfter returns the RetryAfter of the *Failure that u contains; 0 if there is none.
func (u *unknownError) retryAfter() time.Duration {
	var f *Failure
	if errors.As(u.err, &f) {
		return max(f.RetryAfter, 0)
	}
	return 0
}

func (u *unknownError) Unwrap() error { return u.err }

// classify returns the error inside of err that decides the outcome: the outermost *Failure or
// *unknownError. If err joins several errors, and one of them contains an *unknownError, classify
// returns this *unknownError: then it is not certain that nothing was done. If none of them
// contains an *unknownError, classify returns the first *Failure. If err contains neither an
// *unknownError nor a *Failure, both results are nil.
func classify(err error) (*Failure, *unknownError) {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // the loop unwraps the errors itself
		case *Failure:
			return e, nil
		case *unknownError:
			return nil, e
		case interface{ Unwrap() []error }:
			var failure *Failure
			for _, child := range e.Unwrap() {
				f, u := classify(child)
				if u != nil {
					return nil, u
				}
				if failure == nil {
					failure = f
				}
			}
			return failure, nil
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// ValidCode reports whether `code` has the form of an error code: snake_case, at most 63 bytes.
func ValidCode(code string) bool { return names.Valid(code) }

// isStandard reports whether every action may use the code without declaring it.
func isStandard(code string) bool {
	switch code {
	case CodeUnavailable, CodeRateLimited, CodeAborted, CodeInvalid, CodeDenied:
		return true
	}
	return false
}
