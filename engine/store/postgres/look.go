package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// lookBegin begins a read-only transaction for the queries of people. The server limits
// each query, and each pause between queries, to 30 s. All settings last only until the
// transaction ends, because behind a pooler another client gets the session afterwards.
const lookBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '30s';
SET LOCAL jit = off;
` + transactionPath

// lookEnd is how long the method `end` waits for the answer to ROLLBACK.
const lookEnd = 5 * time.Second

// A look holds the rows of a query, and the read-only transaction in which they are read.
// The transaction uses a connection of the pool access.reads. So commits and ticks get
// connections from their own pool, even if people read for a long time. The method Close
// ends the transaction.
type look struct {
	*sql.Rows
	conn *sql.Conn
}

// look runs a query in a read-only transaction. The caller must close the result.
func (s *access) look(ctx context.Context, query string, args ...any) (*look, error) {
	conn, err := s.reads.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &look{conn: conn}
	if _, err = conn.ExecContext(ctx, lookBegin); err == nil {
		l.Rows, err = conn.QueryContext(ctx, query, args...)
	}
	if err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// lookOne runs a query in a read-only transaction, and calls scan with the first row. It
// returns sql.ErrNoRows if there is no row.
func (s *access) lookOne(ctx context.Context, scan func(row interface{ Scan(...any) error }) error, query string, args ...any) error {
	l, err := s.look(ctx, query, args...)
	if err != nil {
		return err
	}
	defer l.Close()
	if !l.Next() {
		if err := l.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := scan(l); err != nil {
		return err
	}
	return l.Err()
}

// Close closes the rows, ends the transaction and returns the connection to the pool.
func (l *look) Close() error { return errors.Join(l.Rows.Close(), l.end()) }

// end ends the transaction with ROLLBACK. If ROLLBACK fails, end makes the pool close the
// connection, which also ends the transaction.
func (l *look) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), lookEnd)
	defer cancel()
	if _, err := l.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		// This error makes the pool close the connection.
		_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	if err := l.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}
