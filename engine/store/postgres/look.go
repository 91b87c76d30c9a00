package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// lookBegin begins a transaction for the queries of people. It can neither write nor lock.
// The server limits each query, and each pause between queries, to 30 s. All settings last
// only for the transaction, because behind a pooler another client gets the session next.
const lookBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '30s';
SET LOCAL jit = off;
` + transactionPath

// lookEnd is how long the ROLLBACK of a look waits for an answer.
const lookEnd = 5 * time.Second

// A look holds the rows of one read-only transaction. The transaction uses a connection of
// the readers' pool. So commits and ticks always have connections, however long people
// read. Close ends the transaction.
type look struct {
	*sql.Rows
	conn *sql.Conn
}

// look runs a query in a read-only transaction.
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

// lookOne scans the only row of a query. It returns sql.ErrNoRows if there is none.
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

// Close ends the transaction and returns the connection to the pool.
func (l *look) Close() error { return errors.Join(l.Rows.Close(), l.end()) }

// end ends the transaction. If that fails, the connection is closed, and the transaction
// ends with it.
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
