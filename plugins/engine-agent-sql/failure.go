package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/sdk"
)

// Error codes that this agent has in addition to those of the SDK.
const (
	codeConflict    = "conflict"      // a constraint of the database refused the change
	codeTooManyRows = "too_many_rows" // the statement returns more than max_rows rows, or too many bytes
	codeKeyReused   = "key_reused"    // an earlier call with the same idempotency key had other statements
)

func invalid(format string, args ...any) error {
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: fmt.Sprintf(format, args...), Permanent: true}
}

// overlong is the beginning of an error text of the driver. The driver returns such an error if an
// error message of the database is longer than the driver can read.
const overlong = "pq: server error: "

// maxMessage is the largest number of bytes of a database's error message that the agent
// returns.
const maxMessage = 2000

func shorten(c *sdk.Call, text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return c.Excerpt(text, maxMessage) + "…"
}

// definite converts an error to a definite failure. It must be called only if nothing was
// committed. The parameter `codes` maps SQLSTATEs, or their first two characters, to error codes of
// the workflow.
func definite(ctx context.Context, c *sdk.Call, codes map[string]string, err error) error {
	var failure *sdk.Failure
	if errors.As(err, &failure) {
		return err
	}
	var pe *pq.Error
	if ctx.Err() != nil {
		return &sdk.Failure{Code: sdk.CodeAborted, Err: fmt.Errorf("%w: %w", context.Cause(ctx), err)}
	}
	if !errors.As(err, &pe) {
		// database/sql has no error type for a wrong number of arguments.
		if strings.Contains(err.Error(), "sql: expected ") {
			return invalid("args: %v", err)
		}
		if text, ok := strings.CutPrefix(err.Error(), overlong); ok {
			// The driver rejects error messages over 30,000 bytes, so the SQLSTATE is not
			// known. A repetition of the statement would cause the same message again. So the
			// failure has the code invalid, not unavailable.
			return &sdk.Failure{Code: sdk.CodeInvalid, Message: "the database's error message is longer than the driver reads; it begins: " + shorten(c, text)}
		}
		return &sdk.Failure{Code: sdk.CodeUnavailable, Err: err}
	}
	state := string(pe.Code)
	text := fmt.Sprintf("%s (SQLSTATE %s)", shorten(c, pe.Message), state)
	for _, s := range []string{state, state[:min(2, len(state))]} {
		if code, ok := codes[s]; ok {
			return &sdk.Failure{Code: code, Message: text}
		}
	}
	switch class := state[:min(2, len(state))]; {
	case class == "40", state == "55P03", state == "57014":
		return &sdk.Failure{Code: sdk.CodeAborted, Message: text}
	case class == "23":
		return &sdk.Failure{Code: codeConflict, Message: text}
	case class == "28", state == "42501":
		return &sdk.Failure{Code: sdk.CodeDenied, Message: text, Permanent: true}
	case class == "08", class == "53", class == "57", class == "58", class == "XX", state == "25P03":
		return &sdk.Failure{Code: sdk.CodeUnavailable, Message: text}
	}
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: text, Permanent: true}
}
