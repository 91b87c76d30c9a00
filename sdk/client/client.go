// Package client submits runs from a Go program, in the program's own transaction on the PostgreSQL
// database of the engines.
//
// In: a transaction of database/sql, the name of a published workflow, and its input. Out: the id of
// the run. The run exists if and only if the transaction commits. The package needs no engine and no
// driver of its own.
package client

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// A Queryer is a *sql.Tx, a *sql.Conn or a *sql.DB. Use a *sql.Tx to submit a run together with other
// rows.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Options of a submission. Zero fields mean their defaults.
type Options struct {
	// Run is the public id of the run. Submitting again with the same id changes nothing, so a
	// program that does not know whether its transaction has committed can repeat it. "" = the
	// database makes one.
	Run string
}

// Submit submits a run of a published workflow, and returns the public id of the run. The input is
// a value that encoding/json writes as an object, with the values of the workflow's variables; nil =
// no values. The database checks it against the published definition. An input that does not fit is
// an error of the database, and the transaction cannot commit any more.
func Submit(ctx context.Context, q Queryer, workflow string, input any, o Options) (run string, err error) {
	data := []byte("{}")
	if input != nil {
		if data, err = json.Marshal(input); err != nil {
			return "", fmt.Errorf("submit %q: %w", workflow, err)
		}
	}
	name := sql.NullString{String: o.Run, Valid: o.Run != ""}
	if err := q.QueryRowContext(ctx, `SELECT engine.submit($1, $2::jsonb, $3)`, workflow, string(data), name).Scan(&run); err != nil {
		return "", fmt.Errorf("submit %q: %w", workflow, err)
	}
	return run, nil
}
