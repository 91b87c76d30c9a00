package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/saga-engine/engine/engine/internal/wait"
)

// A tx runs statements on the writing connection, usually in a writing transaction. Only one such
// transaction exists at a time. The method file.transact begins and ends it. The statements are
// prepared once for each connection. Only one goroutine may use a tx, and it holds the mutex
// file.mu.
type tx struct {
	s *file
}

// A row is one row of a result. If the query failed, Scan returns its error. If the query found
// no row, Scan returns sql.ErrNoRows.
type row interface{ Scan(dest ...any) error }

// A noRow is the row of a query that failed.
type noRow struct{ err error }

// Scan returns the error of the query.
func (r noRow) Scan(...any) error { return r.err }

// stmt returns the prepared statement for a query. It prepares each query only once for a
// connection. The caller holds the mutex file.mu.
func (x *tx) stmt(query string) (*sql.Stmt, error) {
	if st, ok := x.s.stmts[query]; ok {
		return st, nil
	}
	st, err := x.s.conn.PrepareContext(context.Background(), query)
	if err == nil {
		x.s.stmts[query] = st
	}
	return st, err
}

// The statements of a transaction get no context. They take only milliseconds, and a
// context that can end needs a goroutine for each statement.

func (x *tx) exec(query string, args ...any) (sql.Result, error) {
	st, err := x.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(context.Background(), args...)
}

// changed executes a statement and returns the number of rows it changed.
func (x *tx) changed(query string, args ...any) (int64, error) {
	res, err := x.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row returns the first row of a query. If there is none, Scan returns sql.ErrNoRows.
func (x *tx) row(query string, args ...any) row {
	st, err := x.stmt(query)
	if err != nil {
		return noRow{err}
	}
	return st.QueryRowContext(context.Background(), args...)
}

// each calls fn for each row of a query. It stops at the first error and returns it.
func (x *tx) each(query string, args []any, fn func(row) error) (err error) {
	st, err := x.stmt(query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// writeUnowned does the same as the method `write`, but also works in a store that was opened with
// Options.Beside. Such a store does not have the lock. In such a store, writeUnowned opens a
// connection, and closes this connection afterwards.
func (s *file) writeUnowned(ctx context.Context, what string, fn func(*tx) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beside == "" {
		return s.writeLocked(ctx, what, fn)
	}
	defer func() { err = errors.Join(err, s.explain(what, s.disconnect())) }()
	if err := s.openWriter(s.beside); err != nil {
		return s.explain(what, err)
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return s.explain(what, err)
	}
	return s.transact(ctx, what, fn)
}

const (
	turnWait  = 10 * time.Second     // longest wait for the write lock
	turnPause = 2 * time.Millisecond // pause between two tries to get the write lock
)

const (
	txBegin    = `BEGIN IMMEDIATE`
	txCommit   = `COMMIT`
	txRollback = `ROLLBACK`
	noWaiting  = `PRAGMA busy_timeout = 0`
)

// begin takes SQLite's write lock. While another process writes, SQLite itself soon tries only
// every 100 ms. So SQLite would rarely find the short moment between two commits of that process.
// In a store that was opened with Options.Beside, begin therefore tries every 2 ms.
func (x *tx) begin(ctx context.Context) error {
	beside := x.s.beside != ""
	if beside {
		if _, err := x.exec(noWaiting); err != nil {
			return err
		}
	}
	for start := time.Now(); ; {
		_, err := x.exec(txBegin)
		if !beside || code(err) != sqlite3.SQLITE_BUSY || time.Since(start) > turnWait {
			return err
		}
		if err := wait.For(ctx, turnPause); err != nil {
			return err
		}
	}
}

// write calls fn in a transaction that may write. Only one such transaction runs at a time. When
// ctx ends during the transaction, write does not interrupt it: the transaction takes only
// milliseconds, and an interrupted commit would have an unknown outcome.
func (s *file) write(ctx context.Context, what string, fn func(*tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(ctx, what, fn)
}

func (s *file) writeLocked(ctx context.Context, what string, fn func(*tx) error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.lock == nil && s.db == nil || s.beside != "":
		return errReadOnly
	case s.conn == nil:
		return s.explain(what, sql.ErrConnDone)
	}
	return s.transact(ctx, what, fn)
}

// transact calls fn in a transaction on the connection s.conn. The caller holds the mutex s.mu.
func (s *file) transact(ctx context.Context, what string, fn func(*tx) error) error {
	err := s.inTransaction(ctx, what, fn)
	if code(err) == 0 {
		return err
	}
	return s.explain(what, err)
}

func (s *file) inTransaction(ctx context.Context, what string, fn func(*tx) error) error {
	x := &tx{s: s}
	if err := x.begin(ctx); err != nil {
		return err
	}
	err := fn(x)
	if err == nil {
		if err = s.commit(x, what); err == nil {
			return nil
		}
		err = &unanswered{err}
	}
	// After some errors SQLite has already rolled back. Then ROLLBACK fails, because there
	// is no transaction any more. That is not an error here.
	if _, e := x.exec(txRollback); e != nil && code(e) != sqlite3.SQLITE_ERROR {
		err = errors.Join(err, e)
	}
	return err
}

// An unanswered error wraps the error of a COMMIT. Unless the disk is full, it is not known whether
// the transaction was committed.
type unanswered struct{ err error }

// Error returns the text of the error.
func (u *unanswered) Error() string { return u.err.Error() }

// Unwrap returns the error that COMMIT returned.
func (u *unanswered) Unwrap() error { return u.err }

func execCommit(x *tx, _ string) error {
	_, err := x.exec(txCommit)
	return err
}

// now returns store time, which is the machine's time.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// query runs a query on a connection that only reads, and calls fn for each row. It does
// not wait for the writer.
func (s *file) query(ctx context.Context, what, query string, args []any, fn func(row) error) error {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return s.explain(what, err)
	}
	if err := eachRow(rows, fn); err != nil {
		return s.explain(what, err)
	}
	return nil
}

// eachRow calls fn for each row, and closes the rows.
func eachRow(rows *sql.Rows, fn func(row) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
