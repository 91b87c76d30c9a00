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

// Codes of definite failures that this agent has in addition to those of the SDK.
const (
	codeNotFound = "not_found"
	codeConflict = "conflict"
)

// doubtful is an error after which the agent does not know whether the service has changed
// something.
type doubtful struct {
	code string
	// Pause that the service asks for before the call is repeated; 0 = the service asks for no
	// pause.
	after time.Duration
	err   error
	data  any // body of the response, which the workflow reads as error.data; nil = none
}

func (d *doubtful) Error() string { return d.err.Error() }
func (d *doubtful) Unwrap() error { return d.err }

// maybeDone converts a doubtful error to an unknown outcome. It returns other errors unchanged. The
// agent calls maybeDone for HTTP methods that change something.
func maybeDone(err error) error {
	var d *doubtful
	if errors.As(err, &d) {
		return d.unknown()
	}
	return err
}

// unknown returns an unknown outcome with the code of d and the pause that the service asks
// for.
func (d *doubtful) unknown() error {
	return sdk.Unknown(&sdk.Failure{Code: d.code, RetryAfter: d.after, Err: d.err}, d.code)
}

// nothingDone converts a doubtful error to a definite failure. But if the code of the error is
// internal or bad_reply, it converts the error to an unknown outcome. It returns other errors
// unchanged. The agent calls nothingDone for HTTP methods that change nothing.
func nothingDone(err error) error {
	var d *doubtful
	if !errors.As(err, &d) {
		return err
	}
	if d.code == sdk.CodeInternal || d.code == sdk.CodeBadReply {
		return d.unknown() // with the codes internal and bad_reply, the outcome must be unknown
	}
	return &sdk.Failure{Code: d.code, RetryAfter: d.after, Err: d.err, Data: d.data}
}

// invalid returns a definite failure for wrong inputs. It is used before a request is sent.
func invalid(format string, args ...any) error {
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: fmt.Sprintf(format, args...), Permanent: true}
}

// transportError returns the error for a request without a complete response. If the parameter
// `connected` is false, there was no connection, so nothing was sent, and the error is a definite
// failure. If `connected` is true, the service may have changed something, so the error is
// doubtful. In two cases the error is a definite failure even if `connected` is true: net/http
// cannot make the request, or the egress refuses the address after a redirect.
func transportError(ctx context.Context, method string, u *url.URL, err error, connected bool) error {
	var build *buildError
	building := errors.As(err, &build)
	// The text of url.Error contains the whole URL, which may hold secrets.
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	if building {
		return invalid("request: %v", err)
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
		return invalid("request: %s", withoutName(err.Error()))
	case !connected:
		return &sdk.Failure{Code: code, Err: err}
	}
	return &doubtful{code: code, err: err}
}

// withoutName removes the name of a header from an error of net/http that says that the name is
// wrong. The inputs and the configuration with headers are sensitive, and a wrong name may hold a
// value, such as "Authorization: Bearer x". The name stays in the error if only the value is wrong:
// then it is a proper name, and the error does not show the value.
func withoutName(text string) string {
	const wrong = "invalid header field name"
	if before, _, found := strings.Cut(text, wrong); found {
		return before + wrong + " (not shown: headers is sensitive)"
	}
	return text
}

// isRequestError reports whether err says that net/http refuses to send a request. It compares
// texts, because net/http has no error type for this.
func isRequestError(err error) bool {
	return strings.Contains(err.Error(), "net/http: invalid header") ||
		strings.Contains(err.Error(), "http: no Host in request URL")
}
