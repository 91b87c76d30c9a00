package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// lookBegin begins what people's questions are answered in: it can write and
// lock nothing, and ends by itself. Behind a pooler another client gets the
// session next, so nothing is set for longer than the transaction.
const lookBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '30s';
SET LOCAL jit = off;
` + transactionPath

// lookEnd bounds how long an answer is waited for at the end of a look.
const lookEnd = 5 * time.Second

// A look is the rows of one read-only transaction, on a connection of the
// readers' pool: however long people read, commits and ticks have connections
// of their own. Close ends it.
type look struct {
	*sql.Rows
	conn *sql.Conn
}

// look asks a question in a read-only transaction.
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

// lookOne scans the only row of an answer. Returns sql.ErrNoRows if there is
// none.
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

// Close ends the transaction and gives the connection back.
func (l *look) Close() error { return errors.Join(l.Rows.Close(), l.end()) }

// end ends the transaction. A connection on which that fails is given up: its
// transaction ends with it.
func (l *look) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), lookEnd)
	defer cancel()
	if _, err := l.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		// Raw returns the very error that tells the pool to close the connection.
		_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	if err := l.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}
