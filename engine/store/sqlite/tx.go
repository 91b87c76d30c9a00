package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// A tx is the one writing transaction. It speaks to the driver by its standard
// interfaces and not through database/sql, which would take half again the time
// that SQLite needs for a row. It ends with Store.transact, and is for one
// goroutine.
type tx struct {
	s  *Store
	dc driver.Conn

	last  int64 // that was boxed
	boxed any
}

// A stmt is a prepared statement of the writing connection.
type stmt struct {
	driver.Stmt
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
	args  []driver.NamedValue // reused: one execution at a time
}

// stmt returns a prepared statement; Store.mu is held.
func (x *tx) stmt(query string) (*stmt, error) {
	if st, ok := x.s.stmts[query]; ok {
		return st, nil
	}
	dc, ok := x.dc.(driver.ConnPrepareContext)
	if !ok {
		return nil, fmt.Errorf("the driver's %T prepares no statements", x.dc)
	}
	raw, err := dc.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	st := &stmt{Stmt: raw}
	var execs, queries bool
	st.exec, execs = raw.(driver.StmtExecContext)
	if st.query, queries = raw.(driver.StmtQueryContext); !execs || !queries {
		return nil, errors.Join(fmt.Errorf("the driver's %T runs no statements", raw), raw.Close())
	}
	x.s.stmts[query] = st
	return st, nil
}

// bind puts arguments where the driver reads them.
func (st *stmt) bind(args []any) error {
	st.args = st.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case nil, int64, []byte, string:
		case int:
			a = int64(v)
		case int32:
			a = int64(v)
		default:
			var err error
			if a, err = driver.DefaultParameterConverter.ConvertValue(a); err != nil {
				return fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		st.args = append(st.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return nil
}

// A statement of a transaction takes no context: it is a matter of
// milliseconds, and a context that can end costs a goroutine for each.

func (x *tx) exec(query string, args ...any) (driver.Result, error) {
	st, err := x.stmt(query)
	if err == nil {
		err = st.bind(args)
	}
	if err != nil {
		return nil, err
	}
	return st.exec.ExecContext(context.Background(), st.args)
}

// changed is exec for who only asks how many rows that was.
func (x *tx) changed(query string, args ...any) (int64, error) {
	res, err := x.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// A row is one row, or why there is none.
type row interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

// Scan returns the error.
func (r failedRow) Scan(...any) error { return r.err }

// row returns the first row of a query. Scanning it returns sql.ErrNoRows if
// there is none.
func (x *tx) row(query string, args ...any) row {
	var first row = failedRow{sql.ErrNoRows}
	err := x.query(query, args, func(v values) error {
		first = v
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return failedRow{err}
	}
	return first
}

var errEnough = errors.New("enough rows")

// each calls fn for each row of a query.
func (x *tx) each(query string, args []any, fn func(row) error) error {
	return x.query(query, args, func(v values) error { return fn(v) })
}

func (x *tx) query(query string, args []any, fn func(values) error) (err error) {
	st, err := x.stmt(query)
	if err == nil {
		err = st.bind(args)
	}
	if err != nil {
		return err
	}
	rows, err := st.query.QueryContext(context.Background(), st.args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	v := make(values, len(rows.Columns()))
	for {
		switch err := rows.Next(v); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := fn(v); err != nil {
			return err
		}
	}
}

// values is one row as the driver returns it.
type values []driver.Value

// Scan stores the row's columns in what dest points to.
func (v values) Scan(dest ...any) error {
	if len(dest) != len(v) {
		return fmt.Errorf("a row has %d columns, not %d", len(v), len(dest))
	}
	for i, d := range dest {
		if err := scan(d, v[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// scan stores a value in what dest points to: what columns of these tables hold.
func scan(dest any, v driver.Value) error {
	if text, ok := dest.(*string); ok {
		if *text, ok = v.(string); ok {
			return nil
		}
	}
	n, ok := v.(int64)
	switch d := dest.(type) {
	case *int64:
		*d = n
	case *int32:
		*d = int32(n)
	case *int:
		*d = int(n)
	case *uint8:
		*d = uint8(n)
	case *bool:
		*d = n != 0
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%T cannot hold a %T", dest, v)
	}
	return nil
}

// writeUnowned is write for a caller that need not own the file: a store that was opened
// Beside makes a connection for it, and ends it.
func (s *Store) writeUnowned(ctx context.Context, what string, fn func(*tx) error) (err error) {
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
func (s *Store) write(ctx context.Context, what string, fn func(*tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(ctx, what, fn)
}

func (s *Store) writeLocked(ctx context.Context, what string, fn func(*tx) error) error {
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

// raw runs fn with the writing connection; s.mu is held.
func (s *Store) raw(fn func(*tx) error) error {
	return s.conn.Raw(func(dc any) error {
		c, ok := dc.(driver.Conn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T", dc)
		}
		return fn(&tx{s: s, dc: c})
	})
}

// transact runs fn in a transaction of the connection; s.mu is held.
func (s *Store) transact(ctx context.Context, what string, fn func(*tx) error) error {
	err := s.raw(func(x *tx) error {
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
		// After some errors SQLite has rolled back by itself, and says so: that
		// there is no transaction is what we want.
		if _, e := x.exec(txRollback); e != nil && code(e) != sqlite3.SQLITE_ERROR {
			err = errors.Join(err, e)
		}
		return err
	})
	if code(err) == 0 {
		return err
	}
	return s.explain(what, err)
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
