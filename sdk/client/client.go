// Package client submits runs from a Go program, in the program's own transaction on the PostgreSQL
// database of the engines.
//
// Submit takes a transaction of database/sql, the name of a published workflow, and the input, and
// returns the id of the run. The run exists if and only if the transaction commits. The program
// needs no connection to an engine, and uses its own PostgreSQL driver.
package client

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// A Queryer is a *sql.Tx, a *sql.Conn or a *sql.DB. Use a *sql.Tx to submit a run in the same
// transaction as other changes.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Options are the options of a submission. A field with its zero value has its default.
type Options struct {
	// Run is the public id of the run. A second submission with the same id starts no second
	// run. So if a program does not know whether its transaction has committed, it can submit
	// again. If the engines have refused the first submission, the second submission replaces
	// the first. "" = the database makes an id.
	Run string
	// ReplyTo names where the engines post the replies of the run: table:QUEUE, webhook:NAME,
	// webhook:URL or agent:NAME.ACTION. "" = the run has no replies. Each reply repeats the text in
	// Correlation.
	ReplyTo, Correlation string
	// StartBy is the time by which the first step of the run must begin; zero = there is no such
	// time. If no step has begun by this time, the run fails with the code not_started, and nothing
	// was done.
	StartBy time.Time
	// Priority is the priority of the run, from 0 to 100, higher first; nil = as the workflow says.
	Priority *int
}

// Submit submits a run of a published workflow, and returns the public id of the run. The parameter
// `input` holds the values of the workflow's variables: a value that encoding/json writes as an
// object. nil = no values. The database checks the input against the published definition. If the
// input does not fit, Submit returns the error of the database, and the transaction can no longer
// commit.
func Submit(ctx context.Context, q Queryer, workflow string, input any, o Options) (run string, err error) {
	data := []byte("{}")
	if input != nil {
		if data, err = json.Marshal(input); err != nil {
			return "", fmt.Errorf("submit %q: %w", workflow, err)
		}
	}
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
	args := []any{workflow, string(data), text(o.Run), text(o.ReplyTo), text(o.Correlation), sql.NullTime{Time: o.StartBy, Valid: !o.StartBy.IsZero()}, sql.NullInt32{}}
	if o.Priority != nil {
		if *o.Priority < 0 || *o.Priority > 100 {
			return "", fmt.Errorf("submit %q: priority is from 0 to 100, not %d", workflow, *o.Priority)
		}
		args[6] = sql.NullInt32{Int32: int32(*o.Priority), Valid: true}
	}
	// An older database may not know the functions with more parameters. So call the function with
	// the fewest parameters that are enough for these options.
	query := `SELECT engine.submit($1, $2::jsonb, $3, $4, $5, $6, $7)`
	if o.StartBy.IsZero() && o.Priority == nil {
		query, args = `SELECT engine.submit($1, $2::jsonb, $3, $4, $5)`, args[:5]
		if o.ReplyTo == "" && o.Correlation == "" {
			query, args = `SELECT engine.submit($1, $2::jsonb, $3)`, args[:3]
		}
	}
	if err := q.QueryRowContext(ctx, query, args...).Scan(&run); err != nil {
		return "", fmt.Errorf("submit %q: %w", workflow, err)
	}
	return run, nil
}
