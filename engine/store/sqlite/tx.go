package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// A tx is the one writing transaction. Its statements are prepared once for each
// connection. It ends with file.transact, and is for one goroutine.
type tx struct {
	s *file
}

// A row is one row of a result, or the reason why there is none.
type row interface{ Scan(dest ...any) error }

// A noRow is the reason why there is no row.
type noRow struct{ err error }

// Scan returns the reason.
func (r noRow) Scan(...any) error { return r.err }

// stmt returns a prepared statement; file.mu is held.
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

// A statement of a transaction takes no context: it takes milliseconds, and a context
// that can end costs a goroutine for each.

func (x *tx) exec(query string, args ...any) (sql.Result, error) {
	st, err := x.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(context.Background(), args...)
}

// changed executes a statement and returns how many rows it changed.
func (x *tx) changed(query string, args ...any) (int64, error) {
	res, err := x.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row returns the first row of a query. Scanning it returns sql.ErrNoRows if
// there is none.
func (x *tx) row(query string, args ...any) row {
	st, err := x.stmt(query)
	if err != nil {
		return noRow{err}
	}
	return st.QueryRowContext(context.Background(), args...)
}

// each calls fn for each row of a query.
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

// writeUnowned is write for a caller that need not own the file: a store that was opened
// Beside makes a connection for it, and ends it.
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
	turnWait  = 10 * time.Second     // how long a turn at writing is waited for
	turnPause = 2 * time.Millisecond // between two looks
)

const (
	txBegin    = `BEGIN IMMEDIATE`
	txCommit   = `COMMIT`
	txRollback = `ROLLBACK`
	noWaiting  = `PRAGMA busy_timeout = 0`
)

// begin waits for the file's one turn at writing. Beside a busy holder SQLite's
// own waiting comes too rarely to meet the moments between two commits; it
// looks every 100 ms.
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(turnPause):
		}
	}
}

// write runs fn in a transaction, alone. ctx counts until it begins: from then
// on it is a matter of milliseconds, and an interrupted commit would leave its
// outcome in doubt.
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

// transact runs fn in a transaction of the connection; s.mu is held.
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
	// After some errors SQLite has rolled back on its own and reports that there is no
	// transaction. That is what is wanted.
	if _, e := x.exec(txRollback); e != nil && code(e) != sqlite3.SQLITE_ERROR {
		err = errors.Join(err, e)
	}
	return err
}

// unanswered is the error of a transaction whose end was asked for: that it did
// not happen is not certain.
type unanswered struct{ err error }

// Error says what went wrong.
func (u *unanswered) Error() string { return u.err.Error() }

// Unwrap returns what went wrong.
func (u *unanswered) Unwrap() error { return u.err }

func execCommit(x *tx, _ string) error {
	_, err := x.exec(txCommit)
	return err
}

// now is store time: the machine's.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// query reads while the writer may write, and calls fn for each row.
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
