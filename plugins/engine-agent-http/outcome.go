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

// Codes of definite failures that this agent adds to those of the SDK.
const (
	codeNotFound = "not_found"
	codeConflict = "conflict"
)

// doubtful is an error after which it is not known whether the service has acted.
type doubtful struct {
	code  string
	after time.Duration // how long the service asks to wait before a repetition; 0 = not given
	err   error
}

func (d *doubtful) Error() string { return d.err.Error() }
func (d *doubtful) Unwrap() error { return d.err }

// maybeDone turns a doubtful error into an unknown outcome. It is for HTTP methods that change
// something.
func maybeDone(err error) error {
	var d *doubtful
	if errors.As(err, &d) {
		return d.unknown()
	}
	return err
}

// unknown returns an unknown outcome with the code and the requested wait of d.
func (d *doubtful) unknown() error {
	return sdk.Unknown(&sdk.Failure{Code: d.code, RetryAfter: d.after, Err: d.err}, d.code)
}

// nothingDone turns a doubtful error into a definite failure. It is for HTTP methods that change
// nothing.
func nothingDone(err error) error {
	var d *doubtful
	if !errors.As(err, &d) {
		return err
	}
	if d.code == sdk.CodeInternal || d.code == sdk.CodeBadReply {
		return d.unknown() // a definite failure must not have one of these two codes
	}
	return &sdk.Failure{Code: d.code, RetryAfter: d.after, Err: d.err}
}

// invalid returns a definite failure for wrong inputs: no request was sent.
func invalid(format string, args ...any) error {
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: fmt.Sprintf(format, args...), Permanent: true}
}

// transportError returns the outcome of a request that got no response. Without a
// connection nothing was sent, so the service did nothing. With a connection the service
// may have acted.
func transportError(ctx context.Context, method string, u *url.URL, err error, connected bool) error {
	var build *buildError
	if errors.As(err, &build) {
		return invalid("request: %v", build)
	}
	// The text of url.Error contains the whole URL, which may hold secrets.
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

// isRequestError recognises requests that net/http refuses to send. net/http has no error
// type for them.
func isRequestError(err error) bool {
	return strings.Contains(err.Error(), "net/http: invalid header") ||
		strings.Contains(err.Error(), "http: no Host in request URL")
}
