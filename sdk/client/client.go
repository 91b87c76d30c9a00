// Package client submits runs from a Go program, in the program's own transaction on the PostgreSQL
// database of the engines.
//
// Submit takes a transaction of database/sql, the name of a published workflow, and the input. It
// returns the id of the run. The run exists if and only if the transaction commits. The program
// needs no connection to an engine. It uses its own PostgreSQL driver.
package client

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// A Queryer is a *sql.Tx, a *sql.Conn or a *sql.DB. Use a *sql.Tx to submit a run in the same
// transaction as other changes.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Options are the options of a submission. A field with its zero value has its default.
type Options struct {
	// Run is the public id of the run. A second submission with the same id starts no second run. So
	// a program that does not know whether its transaction has committed can submit again. If the
	// engines have refused the first submission, the second one replaces it. "" = the database makes
	// an id.
	Run string
	// ReplyTo names where the engines post the replies of the run: table:QUEUE, webhook:NAME or
	// webhook:URL. "" = the run has no replies. Each reply repeats the text in Correlation.
	ReplyTo, Correlation string
}

// Submit submits a run of a published workflow, and returns the public id of the run. The parameter
// input holds the values of the workflow's variables: a value that encoding/json writes as an object.
// nil = no values. The database checks the input against the published definition. If the input does
// not fit, Submit returns the error of the database, and the transaction can no longer commit.
func Submit(ctx context.Context, q Queryer, workflow string, input any, o Options) (run string, err error) {
	data := []byte("{}")
	if input != nil {
		if data, err = json.Marshal(input); err != nil {
			return "", fmt.Errorf("submit %q: %w", workflow, err)
		}
	}
	name := sql.NullString{String: o.Run, Valid: o.Run != ""}
	query, args := `SELECT engine.submit($1, $2::jsonb, $3)`, []any{workflow, string(data), name}
	if o.ReplyTo != "" {
		query, args = `SELECT engine.submit($1, $2::jsonb, $3, $4, $5)`, append(args, o.ReplyTo, sql.NullString{String: o.Correlation, Valid: o.Correlation != ""})
	}
	if err := q.QueryRowContext(ctx, query, args...).Scan(&run); err != nil {
		return "", fmt.Errorf("submit %q: %w", workflow, err)
	}
	return run, nil
}
