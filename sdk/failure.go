package sdk

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/saga-engine/engine/sdk/internal/names"
)

// A Failure is a definite failure: the action that returns it vouches that nothing was
// done. Every other error an action returns means that the outcome is unknown.
type Failure struct {
	Code       string        // what the workflow branches on; snake_case, declared with Errors or RetryableErrors
	Message    string        // for people; "" = the text of Err
	Permanent  bool          // not to be repeated, even if the workflow's retry allows it
	RetryAfter time.Duration // not to be repeated before this long; 0 = no wish
	Err        error         // cause, or nil
	// Data is what the workflow reads as step.NAME.error.data, such as the body of a
	// refused request. It is encoded as JSON. nil = nothing. Data of more than MaxData bytes
	// is left out, with a warning in the log.
	Data any
}

// MaxData is how many bytes the Data of a Failure may have as JSON.
const MaxData = 64 << 10

// Error returns the message, or else the cause's text, or else the code.
func (f *Failure) Error() string {
	switch {
	case f.Message != "":
		return f.Message
	case f.Err != nil:
		return f.Err.Error()
	}
	return f.Code
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// document returns the failure's data as JSON; nil = there is none, or it cannot be sent.
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

// Code turns err into a definite failure with the given code if it is target,
// in the sense of errors.Is, and returns it unchanged otherwise. Calls nest:
// an error that already is a *Failure stays as it is. Use it only for errors
// which say that nothing was done.
func Code(err, target error, code string) error {
	if err == nil || !errors.Is(err, target) {
		return err
	}
	if _, ok := err.(*Failure); ok { //nolint:errorlint // only the outermost error counts
		return err
	}
	return &Failure{Code: code, Err: err}
}

// Unknown says that the action may or may not have been done, and why: code is
// one that the action declares, or one of the transient codes. If err holds a
// *Failure, the outcome is unknown all the same, but its RetryAfter is kept:
// no attempt before that. It returns nil if err is nil.
func Unknown(err error, code string) error {
	if err == nil {
		return nil
	}
	return &unknownError{err: err, code: code}
}

// unknownError carries a code for an outcome that is not known.
type unknownError struct {
	err  error
	code string
}

func (u *unknownError) Error() string { return u.err.Error() }

// retryAfter is the wish of the failure inside, if there is one.
func (u *unknownError) retryAfter() time.Duration {
	var f *Failure
	if errors.As(u.err, &f) {
		return max(f.RetryAfter, 0)
	}
	return 0
}

func (u *unknownError) Unwrap() error { return u.err }

// classify finds what an error says about the outcome: the outermost *Failure
// or Unknown decides. Where errors are joined, one of them that says unknown
// outweighs a failure, because only "nothing was done" needs a guarantee. Both
// results are nil for a plain error.
func classify(err error) (*Failure, *unknownError) {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // walks the chain itself
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

// ValidCode reports whether code could be declared: snake_case, at most 63 bytes.
func ValidCode(code string) bool { return names.Valid(code) }

// isStandard reports whether every action may say code without declaring it.
func isStandard(code string) bool {
	switch code {
	case CodeUnavailable, CodeRateLimited, CodeAborted, CodeInvalid, CodeDenied:
		return true
	}
	return false
}
