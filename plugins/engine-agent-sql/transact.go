package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/sdk"
)

// transact runs fn in one transaction and commits the transaction. An error before the agent
// sends COMMIT is a definite failure, because the database discards the changes. Once the
// agent has sent COMMIT, an error is a definite failure only if the database has refused the
// COMMIT. With every other error the outcome is unknown.
func (d *database) transact(ctx context.Context, c *sdk.Call, codes map[string]string, opts *sql.TxOptions, fn func(work) error) error {
	x, err := d.session(ctx)
	if err != nil {
		return definite(ctx, c, codes, fmt.Errorf("connect: %w", err))
	}
	defer x.close(ctx)
	tx, err := x.BeginTx(ctx, opts)
	if err != nil {
		x.failed(err)
		return definite(ctx, c, codes, fmt.Errorf("begin: %w", err))
	}
	if err := fn(work{tx, x, d.maxRows}); err != nil {
		x.failed(err)
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) && !x.broken {
			// The rollback failed because the connection is lost. In this case the server rolls
			// the transaction back.
			err = fmt.Errorf("%w (rollback: %w)", err, rollback)
		}
		return definite(ctx, c, codes, err)
	}
	err = tx.Commit()
	x.failed(err)
	var refused *pq.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// database/sql has rolled the transaction back because ctx ended, and sent no COMMIT.
		return &sdk.Failure{Code: sdk.CodeAborted, Err: fmt.Errorf("not committed: %w", err)}
	case errors.As(err, &refused) && (refused.Severity == "FATAL" || refused.Severity == "PANIC"):
		// The server ended the session during the commit, so the outcome is unknown.
		return sdk.Unknown(fmt.Errorf("commit: %w", err), sdk.CodeUnavailable)
	case errors.As(err, &refused):
		return definite(ctx, c, codes, fmt.Errorf("commit: %w", err))
	}
	return sdk.Unknown(fmt.Errorf("commit: %w", err), sdk.CodeUnavailable)
}

// overlong is the beginning of the error that the driver returns if an error message of the
// database is longer than the driver can read.
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
