package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/sdk"
)

// resetTime is the longest time for the reset of a session. If the reset takes longer, the
// agent closes the connection, because the answer of the call must not wait for the reset.
const resetTime = time.Second

// A session is a database connection that one call uses. At the end of the call, the method
// `close` discards the state of the connection: settings, temporary tables, advisory locks,
// prepared statements and LISTEN. So this state cannot change how the next call works.
type session struct {
	*sql.Conn
	socket net.Conn
	// When the call's context ends, the socket is closed. A call of the function `stop` prevents
	// this, and returns true. If the context has already ended, `stop` returns false.
	stop   func() bool
	broken bool // the connection must not be used again
}

// A database is a pool of connections. It runs the transactions of calls.
type database struct {
	*sql.DB
	connector *connector
	maxRows   int // largest number of rows that a statement may return
}

// openDatabase makes the pool of connections. It does not connect yet.
func openDatabase(c *connector, maxConnections, maxRows int) *database {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	db.SetConnMaxIdleTime(time.Minute)
	return &database{DB: db, connector: c, maxRows: maxRows}
}

// session takes a connection from the pool for a call. When ctx ends, the connection is
// closed, even during a statement. The caller must call the method `close` of the session.
func (d *database) session(ctx context.Context) (*session, error) {
	conn, err := d.Conn(ctx)
	if err != nil {
		return nil, err
	}
	x := &session{Conn: conn}
	err = conn.Raw(func(raw any) error {
		if c, ok := raw.(driver.Conn); ok {
			x.socket = d.connector.socket(c)
		}
		if x.socket == nil {
			return driver.ErrBadConn
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	x.stop = context.AfterFunc(ctx, func() { _ = x.socket.Close() })
	return x, nil
}

// work is the transaction of a call, with its session.
type work struct {
	*sql.Tx
	session *session
	maxRows int // largest number of rows that a statement may return
}

// failed must be called after each statement, with the error of the statement or nil. If the error
// comes from the database or from the agent itself, the connection can still be used. After any
// other error, the method `failed` closes the connection: it is not known what the server sends
// next, and even a ROLLBACK could wait for ever.
func (x *session) failed(err error) {
	var (
		answer *pq.Error
		ours   *sdk.Failure // error made by the agent itself
	)
	if err == nil || errors.As(err, &answer) || errors.As(err, &ours) {
		return
	}
	x.broken = true
	_ = x.socket.Close()
}

// close resets the session and returns the connection to the pool. If the reset fails, or if
// the session is broken, it closes the connection.
func (x *session) close(ctx context.Context) {
	if !x.stop() || !x.reset(ctx) {
		x.broken = true
	}
	if x.broken {
		_ = x.socket.Close()
		_ = x.Raw(func(any) error { return driver.ErrBadConn }) // makes the pool drop the connection
	}
	_ = x.Conn.Close() // an error only means that the connection is closed already
}

// reset discards the state of the connection. It returns false if this failed or took too long.
func (x *session) reset(ctx context.Context) bool {
	if x.broken {
		return false
	}
	limit := resetTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2) // leave half of the remaining time for the answer of the call
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = x.socket.Close() })
	_, err := x.ExecContext(ctx, "DISCARD ALL")
	return stop() && err == nil
}
