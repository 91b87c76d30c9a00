package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/sdk"
)

// A dedupe reads and writes the dedupe table. The table holds the idempotency key and the result of
// each call of the action `exec` that was committed.
type dedupe struct {
	db    *database
	table string // name of the table, quoted for SQL
}

// exec executes statements once for each idempotency key. The transaction of the statements also
// inserts a row with the key into the dedupe table. So a second call with the same key waits until
// the transaction of the first call ends. If that transaction was committed, the second call finds
// the result of the first call in the row. Otherwise the second call executes the statements. The
// parameter `codes` maps SQLSTATEs to error codes of the workflow.
func (e *dedupe) exec(ctx context.Context, c *sdk.Call, codes map[string]string, sts []statement) (rowsOut, error) {
	if c.IdempotencyKey == "" {
		return rowsOut{}, invalid("the call has no idempotency key")
	}
	request, err := fingerprint(sts)
	if err != nil {
		return rowsOut{}, err
	}
	var out rowsOut
	attempt := func() error {
		return e.db.transact(ctx, c, codes, nil, func(tx work) error {
			var err error
			out, err = e.once(ctx, tx, c.IdempotencyKey, request, sts)
			return err
		})
	}
	err = attempt()
	if errors.Is(err, errNoTable) {
		if err := e.makeTable(ctx); err != nil {
			return rowsOut{}, definite(ctx, c, codes, err)
		}
		err = attempt()
	}
	return out, err
}

// errNoTable is the error if the dedupe table does not exist.
var errNoTable = &sdk.Failure{Code: sdk.CodeUnavailable, Message: "the dedupe table does not exist"}

func (e *dedupe) once(ctx context.Context, tx work, key, request string, sts []statement) (rowsOut, error) {
	insert := "INSERT INTO " + e.table + " (key, request) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING"
	res, err := tx.ExecContext(ctx, insert, key, request)
	if err != nil {
		return rowsOut{}, noTable(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		if err != nil {
			return rowsOut{}, fmt.Errorf("record the key: %w", err)
		}
		return e.recorded(ctx, tx.Tx, key, request)
	}
	out, err := tx.run(ctx, sts)
	if err != nil {
		return rowsOut{}, err
	}
	result, err := json.Marshal(storedResult{Rows: out.Rows, Affected: out.RowsAffected})
	if err != nil {
		return rowsOut{}, fmt.Errorf("record the result: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+e.table+" SET result = $2 WHERE key = $1", key, string(result)); err != nil {
		return rowsOut{}, fmt.Errorf("record the result: %w", err)
	}
	return out, nil
}

// storedResult is the output of a call (a rowsOut) as the dedupe table holds it, in JSON.
type storedResult struct {
	Rows     any   `json:"rows"`
	Affected int64 `json:"rows_affected"`
}

// recorded returns the result that the dedupe table holds for a key. The parameter `request` is the
// fingerprint of the call's statements; "" = do not compare it. If the table holds another
// fingerprint for the key, the error is a definite failure with codeKeyReused.
func (e *dedupe) recorded(ctx context.Context, tx *sql.Tx, key, request string) (rowsOut, error) {
	var was string
	var result []byte
	err := tx.QueryRowContext(ctx, "SELECT request, result FROM "+e.table+" WHERE key = $1", key).Scan(&was, &result)
	if err != nil {
		return rowsOut{}, noTable(err)
	}
	if request != "" && was != request {
		return rowsOut{}, &sdk.Failure{Code: codeKeyReused, Message: "the idempotency key was used for other statements", Permanent: true}
	}
	var stored storedResult
	dec := json.NewDecoder(bytes.NewReader(result))
	dec.UseNumber()
	if err := dec.Decode(&stored); err != nil {
		return rowsOut{}, fmt.Errorf("recorded result of the key: %w", err)
	}
	return rowsOut{Rows: stored.Rows, RowsAffected: stored.Affected}, nil
}

// lookup finds out whether the transaction with the call's key was committed. If it was, lookup
// returns done = true and the result. To find out, lookup tries to insert the key in a
// transaction that it never commits. So it waits while a transaction with the same key is open.
func (e *dedupe) lookup(ctx context.Context, c *sdk.Call) (out rowsOut, done bool, err error) {
	x, err := e.db.session(ctx)
	if err != nil {
		return rowsOut{}, false, sdk.Unknown(err, sdk.CodeUnavailable)
	}
	defer x.close(ctx)
	tx, err := x.BeginTx(ctx, nil)
	if err != nil {
		x.failed(err)
		return rowsOut{}, false, sdk.Unknown(err, sdk.CodeUnavailable)
	}
	defer tx.Rollback() //nolint:errcheck // the transaction changed nothing
	defer func() { x.failed(err) }()
	insert := "INSERT INTO " + e.table + " (key, request) VALUES ($1, '') ON CONFLICT (key) DO NOTHING"
	res, err := tx.ExecContext(ctx, insert, c.IdempotencyKey)
	if err != nil {
		if errors.Is(noTable(err), errNoTable) {
			return rowsOut{}, false, nil
		}
		return rowsOut{}, false, sdk.Unknown(err, sdk.CodeUnavailable)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return rowsOut{}, false, sdk.Unknown(err, sdk.CodeUnavailable)
	}
	if n > 0 {
		return rowsOut{}, false, nil
	}
	out, err = e.recorded(ctx, tx, c.IdempotencyKey, "")
	return out, err == nil, err
}

// makeTable creates the dedupe table if it does not exist. It uses an advisory lock: if two
// calls created the table at the same time, one of the calls would fail.
func (e *dedupe) makeTable(ctx context.Context) error {
	x, err := e.db.session(ctx)
	if err != nil {
		return fmt.Errorf("make the dedupe table: %w", err)
	}
	defer x.close(ctx)
	tx, err := x.BeginTx(ctx, nil)
	if err != nil {
		x.failed(err)
		return fmt.Errorf("make the dedupe table: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit the rollback does nothing
	for _, text := range []string{
		"SELECT pg_advisory_xact_lock(hashtextextended('engine-agent-sql dedupe table', 0))",
		"CREATE TABLE IF NOT EXISTS " + e.table + " (key text PRIMARY KEY, request text NOT NULL, result jsonb, at timestamptz NOT NULL DEFAULT now())",
	} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			x.failed(err)
			return fmt.Errorf("make the dedupe table: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		x.failed(err)
		return fmt.Errorf("make the dedupe table: %w", err)
	}
	return nil
}

func noTable(err error) error {
	var pe *pq.Error
	if errors.As(err, &pe) && pe.Code == "42P01" {
		return errNoTable
	}
	return fmt.Errorf("dedupe table: %w", err)
}

// fingerprint returns a hash of the statements and their arguments, to find out whether two
// calls have the same statements.
func fingerprint(sts []statement) (string, error) {
	data, err := json.Marshal(sts)
	if err != nil {
		return "", invalid("args: %v", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
