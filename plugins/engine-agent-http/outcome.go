package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// Codes of definite failures that the SDK does not have.
const (
	codeNotFound = "not_found"
	codeConflict = "conflict"
)

// doubtful is an error after which the service may or may not have acted.
type doubtful struct {
	code  string
	after time.Duration // the service's wish before a repetition
	err   error
}

func (d *doubtful) Error() string { return d.err.Error() }
func (d *doubtful) Unwrap() error { return d.err }

// maybeDone is what doubt means for methods that change something.
func maybeDone(err error) error {
	var d *doubtful
	if errors.As(err, &d) {
		return d.unknown()
	}
	return err
}

// unknown is the outcome that nobody knows, with the service's wish.
func (d *doubtful) unknown() error {
	return sdk.Unknown(&sdk.Failure{Code: d.code, RetryAfter: d.after, Err: d.err}, d.code)
}

// nothingDone is what doubt means for methods that change nothing: a failure.
func nothingDone(err error) error {
	var d *doubtful
	if !errors.As(err, &d) {
		return err
	}
	if d.code == sdk.CodeInternal || d.code == sdk.CodeBadReply {
		return d.unknown() // codes that no failure may have
	}
	return &sdk.Failure{Code: d.code, RetryAfter: d.after, Err: d.err}
}

// invalid is a definite failure: the request was never sent.
func invalid(format string, args ...any) error {
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: fmt.Sprintf(format, args...), Permanent: true}
}

// transportError says what an error without a response means: as long as there
// was no connection nothing was sent, and so nothing was done.
func transportError(ctx context.Context, method string, u *url.URL, err error, connected bool) error {
	var build *buildError
	if errors.As(err, &build) {
		return invalid("request: %v", build)
	}
	// url.Error repeats the whole URL, which may hold what nobody should read.
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	code := sdk.CodeUnavailable
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		if errors.Is(err, context.Canceled) {
			code = sdk.CodeAborted
		}
	}
	err = fmt.Errorf("%s %s: %w", method, u.Host, err)
	var no *refused
	switch {
	case errors.As(err, &no):
		return &sdk.Failure{Code: sdk.CodeDenied, Permanent: true, Err: err}
	case !connected && isRequestError(err):
		return invalid("request: %v", err)
	case !connected:
		return &sdk.Failure{Code: code, Err: err}
	}
	return &doubtful{code: code, err: err}
}

// isRequestError recognises requests that net/http refuses to send, for which
// it has no error type.
func isRequestError(err error) bool {
	return strings.Contains(err.Error(), "net/http: invalid header") ||
		strings.Contains(err.Error(), "http: no Host in request URL")
}
