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

// resetTime is the longest time that resetting a session may take. A session that
// takes longer is closed: the call's answer must not wait for it.
const resetTime = time.Second

// A session is a connection while one call has it. Nothing of the session reaches
// the next call: settings, temporary tables, advisory locks, prepared statements
// and LISTEN are discarded.
type session struct {
	*sql.Conn
	socket net.Conn
	stop   func() bool // ends the watch over ctx; false if the socket is closed
	broken bool
}

// A database hands out connections and runs transactions on them.
type database struct {
	*sql.DB
	connector *connector
	maxRows   int // that a statement may return
}

// openDatabase does not connect yet.
func openDatabase(c *connector, maxConnections, maxRows int) *database {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	db.SetConnMaxIdleTime(time.Minute)
	return &database{DB: db, connector: c, maxRows: maxRows}
}

// session takes a connection for a call. When ctx ends, the connection is closed,
// whatever it is doing. The caller must call close.
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

// work is the transaction of a call.
type work struct {
	*sql.Tx
	session *session
	maxRows int // that a statement may return
}

// failed notes an error of a statement. After any error but the database's own
// answer nobody knows what the server will send next, so the connection is closed
// at once: even a ROLLBACK could wait for ever.
func (x *session) failed(err error) {
	var (
		answer *pq.Error
		ours   *sdk.Failure // the agent itself refuses to go on
	)
	if err == nil || errors.As(err, &answer) || errors.As(err, &ours) {
		return
	}
	x.broken = true
	_ = x.socket.Close()
}

// close resets the session and gives the connection back, or closes it.
func (x *session) close(ctx context.Context) {
	if !x.stop() || !x.reset(ctx) {
		x.broken = true
	}
	if x.broken {
		_ = x.socket.Close()
		_ = x.Raw(func(any) error { return driver.ErrBadConn }) // the pool drops it
	}
	_ = x.Conn.Close() // its error is that the connection is gone
}

// reset discards the state of the session. It reports false if that failed.
func (x *session) reset(ctx context.Context) bool {
	if x.broken {
		return false
	}
	limit := resetTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2) // leave time for the answer
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = x.socket.Close() })
	_, err := x.ExecContext(ctx, "DISCARD ALL")
	return stop() && err == nil
}
