package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/sdk"
)

// transact runs fn in one transaction and commits it. Whatever goes wrong before
// COMMIT is sent is a definite failure: the database undoes it. After that only
// the database's own refusal is one; everything else is not known.
func (s *agent) transact(ctx context.Context, codes map[string]string, opts *sql.TxOptions, fn func(*sql.Tx) error) error {
	if err := checkCodes(codes); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, opts)
	if err != nil {
		return definite(ctx, codes, fmt.Errorf("begin: %w", err))
	}
	if err := fn(tx); err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			// The connection is lost, and the transaction with it.
			err = fmt.Errorf("%w (rollback: %w)", err, rollback)
		}
		return definite(ctx, codes, err)
	}
	err = tx.Commit()
	var refused *pq.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// database/sql rolled back when ctx ended, and sent no COMMIT.
		return &sdk.Failure{Code: sdk.CodeAborted, Err: fmt.Errorf("not committed: %w", err)}
	case errors.As(err, &refused) && (refused.Severity == "FATAL" || refused.Severity == "PANIC"):
		// The server went away while it committed.
		return sdk.Unknown(fmt.Errorf("commit: %w", err), sdk.CodeUnavailable)
	case errors.As(err, &refused):
		return definite(ctx, codes, fmt.Errorf("commit: %w", err))
	}
	return sdk.Unknown(fmt.Errorf("commit: %w", err), sdk.CodeUnavailable)
}

var (
	statePattern = regexp.MustCompile(`^[0-9A-Z]{2}([0-9A-Z]{3})?$`)
	codePattern  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
)

func checkCodes(codes map[string]string) error {
	for state, code := range codes {
		if !statePattern.MatchString(state) {
			return invalid("errors: %q is neither an SQLSTATE such as 23505 nor a class such as 23", state)
		}
		if !codePattern.MatchString(code) || meansUnknown(code) {
			return invalid("errors: %q cannot be an error code: want snake_case, and none of the engine's own", code)
		}
	}
	return nil
}

// meansUnknown reports whether a code stands for an unknown outcome and so
// cannot name a definite failure.
func meansUnknown(code string) bool {
	switch code {
	case sdk.CodeTimeout, sdk.CodeAgentLost, sdk.CodeInternal, sdk.CodeBadReply:
		return true
	}
	return false
}

// definite makes a failure of an error after which nothing was committed.
func definite(ctx context.Context, codes map[string]string, err error) error {
	var failure *sdk.Failure
	if errors.As(err, &failure) {
		return err
	}
	var pe *pq.Error
	if ctx.Err() != nil {
		return &sdk.Failure{Code: sdk.CodeAborted, Err: fmt.Errorf("%w: %w", context.Cause(ctx), err)}
	}
	if !errors.As(err, &pe) {
		if strings.Contains(err.Error(), "sql: expected ") { // database/sql has no type for it
			return invalid("args: %v", err)
		}
		return &sdk.Failure{Code: sdk.CodeUnavailable, Err: err}
	}
	state := string(pe.Code)
	text := fmt.Sprintf("%s (SQLSTATE %s)", pe.Message, state)
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
