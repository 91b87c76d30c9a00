package client

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// A Reply notifies the submitter of a run about what has happened to the run.
type Reply struct {
	Run         string // public id of the run
	Workflow    string
	Key         string // unique key of the run; "" = none
	Correlation string // Options.Correlation of the submission
	Seq         int    // number of the reply in its run: 1, 2, 3, … without gaps
	Status      string // "accepted", "started", or the status that the run has reached
	At          time.Time
}

// Channel is the channel on which engines send NOTIFY when replies may wait in a queue. The
// payload is the name of the queue. A NOTIFY can be lost, so a consumer must also look for
// replies from time to time.
const Channel = "engine_replies"

// A Rows is a *sql.Tx, a *sql.Conn or a *sql.DB. Use a *sql.Tx to take replies and to store
// what follows from them in the same transaction.
type Rows interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Replies takes replies out of a queue, and returns at most `most` of them. For each run it returns
// only the next reply, so call Replies again until it returns none. If the transaction does not
// commit, the replies stay in the queue. Several consumers can take replies from one queue at the
// same time: each reply goes to one of them, and the replies of a run keep their order.
func Replies(ctx context.Context, q Rows, queue string, most int) (list []Reply, err error) {
	rows, err := q.QueryContext(ctx, `SELECT run, workflow, key, correlation, seq, status, at FROM engine.take_replies($1, $2)`, queue, most)
	if err != nil {
		return nil, fmt.Errorf("take replies of queue %q: %w", queue, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r Reply
		if err := rows.Scan(&r.Run, &r.Workflow, &r.Key, &r.Correlation, &r.Seq, &r.Status, &r.At); err != nil {
			return nil, fmt.Errorf("take replies of queue %q: %w", queue, err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("take replies of queue %q: %w", queue, err)
	}
	return list, nil
}
