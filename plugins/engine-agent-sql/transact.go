package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
