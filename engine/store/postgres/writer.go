package postgres

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// answerLimit is how long a writer waits for the server's answer before it closes the connection
// and sends again. It is longer than the server's statement_timeout. So a writer waits so long for
// one statement only if the network has failed. For all statements of a transaction together, the
// limit is the same.
const answerLimit = 15 * time.Second

// A Writer commits transitions through its own connection. When the fence row of the Writer is
// removed, the Writer cannot commit any more.
type Writer struct {
	s      *Store
	engine store.EngineID
	n      int

	db    *sql.DB
	conn  *sql.Conn // connection to the server; nil = the connection must be opened first
	stmts map[string]*sql.Stmt
	raw   atomic.Pointer[net.Conn] // socket of the field `conn`; the method `cut` closes it
	line  int64                    // PostgreSQL timeline of conn's server; a failover begins a new timeline
	batch batch
	names map[string]bool    // names in the present batch
	keys  map[[2]string]bool // keys in the present batch, each with its workflow
}

var _ store.Writer = (*Writer)(nil)

// OpenWriter opens the n-th writer of an engine. It returns ErrFenced if the engine was
// declared dead.
func (s *Store) OpenWriter(ctx context.Context, id store.EngineID, n int) (store.Writer, error) {
	w := &Writer{s: s, engine: id, n: n, names: make(map[string]bool), keys: make(map[[2]string]bool)}
	if err := w.connect(ctx); err != nil {
		var nothing connectError
		if errors.As(err, &nothing) {
			err = nothing.error
		}
		return nil, err
	}
	var open bool
	if err := w.conn.QueryRowContext(ctx, fenceOpen, int64(id), n).Scan(&open); err != nil {
		return nil, errors.Join(wrap("open writer", err), w.Close())
	}
	if !open {
		return nil, errors.Join(store.ErrFenced, w.Close())
	}
	return w, nil
}

// Close closes the writer's connection. It also removes the writer from the field `lineage`,
// which keeps the last confirmed row of each writer.
func (w *Writer) Close() error {
	w.s.lineage.forget(w)
	return w.hangUp()
}

// Commit commits a batch, including most submissions, with one statement. It commits some
// transitions afterwards, each in a separate transaction: admissions of existing runs, submissions
// with conditions that the statement cannot check, and submissions whose name, key or id another
// run may have. Commit returns ErrFenced if the engine was declared dead and nothing of the batch
// is committed. If a part of the batch was committed before that, ErrFenced is the outcome of each
// submission that is not committed.
func (w *Writer) Commit(ctx context.Context, items []store.Transition) ([]store.Outcome, error) {
	if err := storekit.ValidateBatch(items); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer w.s.minima.lower(w.engine, items)
	c := commit{w: w, items: items, out: make([]store.Outcome, len(items))}
	send, where := c.sortOut()
	if len(send) > 0 {
		c.token = w.token()
		all := c.out
		if where != nil {
			c.items, c.out = send, make([]store.Outcome, len(send))
		}
		unsure := c.doubt
		c.doubt = nil
		if err := c.land(ctx, 0, len(send), false); err != nil {
			return nil, err
		}
		if where != nil {
			for i, o := range c.out {
				all[where[i]] = o
			}
			for _, i := range c.doubt {
				unsure = append(unsure, where[i])
			}
			c.items, c.out, c.doubt = items, all, unsure
		}
	}
	c.meet(ctx)
	for _, i := range c.doubt {
		if err := c.commitSingly(ctx, i); err != nil {
			return nil, err
		}
	}
	return c.finish()
}

func (w *Writer) hangUp() error {
	var err error
	if w.conn != nil {
		if err = w.conn.Close(); errors.Is(err, sql.ErrConnDone) {
			err = nil // the pool has closed the broken connection already
		}
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	w.db, w.conn, w.stmts = nil, nil, nil
	return err
}

// A connectError says that the writer could not connect, and so has sent nothing.
type connectError struct{ error }

// Unwrap returns the cause.
func (e connectError) Unwrap() error { return e.error }

// connect opens the connection, unless a connection to the present server is open already.
// Its error is a connectError, or a *store.LossError if the server has lost commits.
func (w *Writer) connect(ctx context.Context) error {
	if w.conn != nil && w.s.lineage.stale(w.line) {
		w.cut()
		// The server was replaced, so the error of closing does not matter.
		_ = w.hangUp()
	}
	if w.conn == nil {
		if err := w.dial(ctx); err != nil {
			return connectError{err}
		}
	}
	return w.s.lineage.err()
}

func (w *Writer) dial(ctx context.Context) error {
	c, err := w.s.source.connector(dialer{got: func(c net.Conn) { w.raw.Store(&c) }})
	if err != nil {
		return err
	}
	w.db, w.stmts = sql.OpenDB(connector{c, w.s.access}), make(map[string]*sql.Stmt)
	w.db.SetMaxOpenConns(1)
	if w.conn, err = w.db.Conn(ctx); err != nil {
		var wrong *WrongServerError
		if !errors.As(err, &wrong) {
			err = w.s.source.unreachable(err)
		}
		return errors.Join(err, w.hangUp())
	}
	err = w.conn.Raw(func(c any) error {
		if l, ok := c.(*checked); ok {
			w.line = l.line
		}
		return nil
	})
	if err == nil && !w.s.pooled.Load() {
		_, err = w.conn.ExecContext(ctx, writerSession)
	}
	if err != nil {
		return errors.Join(wrap("prepare writer session", err), w.hangUp())
	}
	return nil
}

// cut closes the socket of the connection. If the writer is waiting for the answer to a
// statement, it gets an error, and the outcome of the statement is unknown.
func (w *Writer) cut() {
	if c := w.raw.Swap(nil); c != nil {
		// The error of closing a closed socket is ignored.
		_ = (*c).Close()
	}
}

// answered calls fn, which waits for an answer of the server. When ctx ends, or after answerLimit,
// answered closes the socket, and then fn fails. The context that fn gets cannot be cancelled. With
// a context that can be cancelled, the driver would use a goroutine for each call, and a second
// connection to cancel the statement.
func (w *Writer) answered(ctx context.Context, fn func(ctx context.Context) error) error {
	defer context.AfterFunc(ctx, w.cut)()
	defer time.AfterFunc(answerLimit, w.cut).Stop()
	return fn(context.WithoutCancel(ctx))
}

// queryRow runs a commit statement and scans its only row. It prepares each statement once.
// Behind a pooler it prepares nothing, because each transaction may use another session.
func (w *Writer) queryRow(ctx context.Context, query string, args []any, to ...any) error {
	if w.s.pooled.Load() {
		return w.conn.QueryRowContext(ctx, query, args...).Scan(to...)
	}
	stmt, ok := w.stmts[query]
	if !ok {
		var err error
		if stmt, err = w.conn.PrepareContext(ctx, query); err != nil {
			return err
		}
		w.stmts[query] = stmt
	}
	return stmt.QueryRowContext(ctx, args...).Scan(to...)
}

// transact calls fn in a transaction. If fn returns keep = true and no error, transact
// commits the transaction; otherwise it rolls the transaction back. If COMMIT itself fails,
// the outcome may be unknown.
func (w *Writer) transact(ctx context.Context, fn func(ctx context.Context) (keep bool, err error)) error {
	begin := "BEGIN"
	if w.s.pooled.Load() {
		begin = poolerBegin
	}
	if _, err := w.conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	keep, err := fn(ctx)
	if err == nil && keep {
		_, err = w.conn.ExecContext(ctx, "COMMIT")
		return err
	}
	if _, e := w.conn.ExecContext(ctx, "ROLLBACK"); e != nil {
		w.drop(e)
	}
	return err
}

// token returns a new token for a commit. The journal rows of the commit contain the token. So
// after a lost answer, the writer can recognize its rows. A token consists of the engine's number
// and the number of the store's tokens so far.
func (w *Writer) token() int64 {
	return int64(w.engine)<<32 | int64(w.s.tokens.Add(1))
}

// maxTries is how many times an operation is repeated before its error is returned. The
// method `stuck` logs an operation after the same number of tries.
const maxTries = 5

// backoff waits before the n-th repetition, or until ctx ends.
func backoff(ctx context.Context, n int) error {
	return wait.For(ctx, min(10*time.Millisecond<<min(n, 10), time.Second))
}

// errReplaced says that a former primary has confirmed a commit after another server had
// replaced it. This confirmation does not count.
var errReplaced = errors.New("postgres: the server that answered has been replaced by another")

// confirm records the last committed row of a batch, for later checks of whether a server has
// lost commits. One row is enough, because a server that has this row also has all earlier
// commits. The parameter `landed` has the runs whose rows are committed; nil = all rows are
// committed. If another server has replaced the one that answered, confirm records nothing and
// returns errReplaced.
func (w *Writer) confirm(token int64, items []store.Transition, landed map[status.RunID]bool) error {
	t := &items[len(items)-1]
	for i := range items {
		if landed[items[i].Run] {
			t = &items[i]
		}
	}
	if !w.s.lineage.confirm(w, w.line, mark{t.Run, t.Seq, token}) {
		return errReplaced
	}
	return nil
}

// drop closes the writer's connection, if err shows that the connection is broken, that its server
// accepts no writes, or that a pooler has changed the session. The next connection may lead to
// another server.
func (w *Writer) drop(err error) {
	w.s.noteLost(err)
	var e *pq.Error
	if !errors.As(err, &e) || e.Fatal() || judge(err) == unknown || e.Code == "25006" || e.Code == "26000" || e.Code == "42P05" {
		w.cut()
		// The error of closing a broken connection is ignored, because err is the cause.
		_ = w.hangUp()
	}
}
