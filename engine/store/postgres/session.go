package postgres

import (
	"context"
	"database/sql"
	"fmt"
)

// Every statement names the schema of each table and function, including pg_catalog. But
// the server finds operators, and names in the bodies of functions, with the search path.
// By default, the search path contains the schema `public`. A role that may create objects in
// public could make an engine or `db migrate` run its code. So every session and every
// transaction has the search path pg_catalog, pg_temp. pg_temp must be named last, because
// otherwise the server would search it first.
const (
	// sessionSettings is an SQL expression that changes the settings of the session. It
	// makes the server confirm commits only when they are durable, and keeps a stricter
	// setting of the database. It disables bitmap scans: a plain index scan marks entries
	// of ended runs, and later scans skip the marked entries. A bitmap scan marks no
	// entries.
	sessionSettings = `pg_catalog.concat(
         CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local') THEN pg_catalog.set_config('synchronous_commit', 'on', false) END,
         pg_catalog.set_config('enable_bitmapscan', 'off', false),
         pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false))`
	sessionSettle = `SELECT ` + sessionSettings

	// transactionDurable makes the server confirm the commit of one transaction only when
	// it is durable. For a whole session, sessionSettings does this.
	transactionDurable = `SELECT pg_catalog.set_config('synchronous_commit', 'on', true) WHERE pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')`

	// transactionPath and transactionSettings change settings only for one transaction. The
	// store uses them if a pooler may give the session to another client afterwards.
	transactionPath     = `SET LOCAL search_path = pg_catalog, pg_temp`
	transactionSettings = transactionPath + `; ` + transactionDurable
)

// keeps reports whether a store may change the settings of its sessions. It returns false
// if a pooler may give a session to another client, or if this is not known yet.
func (s *access) keeps() bool { return s.direct.Load() && !s.pooled.Load() }

// settleBare applies sessionSettings to a new connection, before the pool gets the
// connection.
func settleBare(ctx context.Context, w wire) error {
	_, err := first(ctx, w, 1, sessionSettle)
	return err
}

// settle applies sessionSettings to open connections of the pool.
func settle(ctx context.Context, conns []*sql.Conn) error {
	for _, c := range conns {
		if _, err := c.ExecContext(ctx, sessionSettle); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a transaction. Behind a pooler the session may have the settings of other
// clients, so begin applies transactionSettings.
func (s *access) begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil || !s.pooled.Load() {
		return tx, err
	}
	if _, err := tx.ExecContext(ctx, transactionSettings); err != nil {
		return nil, rolledBack(tx, err)
	}
	return tx, nil
}

// A WrongServerError says that a store's address leads to a server to which the store must
// not write: the former primary after a failover, or another database cluster. The store
// has written nothing to this server.
type WrongServerError struct {
	Store      string // kind of the store: "postgres"
	Seen, Have int64  // PostgreSQL timelines: the highest of all servers so far; the timeline of this server
	Reason     string // what is wrong; only for display
}

// Error says what is wrong and what to do.
func (e *WrongServerError) Error() string {
	return fmt.Sprintf("%s: nothing is written to this server: %s (timeline %d, seen before: %d): let the DSN lead to the present primary, and stop the former one",
		e.Store, e.Reason, e.Have, e.Seen)
}
