package postgres

import (
	"context"
	"database/sql"
)

// Every statement names the schema of each table and function, including pg_catalog. The
// search path is still important, because the server looks up operators, and names in the
// bodies of functions, in it. With the server's default, another role that may create
// objects in a schema of the path, such as public, could make an engine or db migrate run
// its code. So every session and every transaction searches only pg_catalog. pg_temp is
// named because the server would search it first otherwise.
const (
	// sessionSettings is an expression that changes the settings of the session. If the
	// server confirms commits before they are durable, the session waits for durability; a
	// stricter setting of the database is kept. Bitmap scans are disabled, because only
	// plain index scans mark the entries of ended runs, so that the next scan skips them.
	sessionSettings = `pg_catalog.concat(
         CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local') THEN pg_catalog.set_config('synchronous_commit', 'on', false) END,
         pg_catalog.set_config('enable_bitmapscan', 'off', false),
         pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false))`
	sessionSettle = `SELECT ` + sessionSettings

	// transactionDurable makes the commit of one transaction wait until it is durable. For
	// a session, sessionSettings does the same.
	transactionDurable = `SELECT pg_catalog.set_config('synchronous_commit', 'on', true) WHERE pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')`

	// transactionPath and transactionSettings change settings only for one transaction.
	// They are for sessions that a pooler gives to another client afterwards.
	transactionPath     = `SET LOCAL search_path = pg_catalog, pg_temp`
	transactionSettings = transactionPath + `; ` + transactionDurable
)

// keeps reports whether a store may change the settings of its sessions: there is no pooler
// that gives a session to another client.
func (s *access) keeps() bool { return s.direct.Load() && !s.pooled.Load() }

// settleBare applies sessionSettings to a connection before the pool gets it.
func settleBare(ctx context.Context, w wire) error {
	_, err := first(ctx, w, 1, sessionSettle)
	return err
}

// settle applies sessionSettings to connections that the pool has already.
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
