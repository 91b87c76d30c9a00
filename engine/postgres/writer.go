package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// answerLimit is how long a writer waits for an answer before it cuts the
// connection and sends again: longer than the server's statement_timeout, so
// that it strikes only where the network has died.
const answerLimit = 15 * time.Second

// A Writer commits through a connection of its own, for one fence row.
type Writer struct {
	s      *Store
	engine engine.EngineID
	n      int

	db    *sql.DB
	conn  *sql.Conn // nil = to be opened
	stmts map[string]*sql.Stmt
	raw   atomic.Pointer[net.Conn] // of conn, to cut it
	line  int64                    // timeline of the server that conn leads to
	batch batch
}

var _ engine.Writer = (*Writer)(nil)

// OpenWriter opens the n-th writer of an engine. Returns ErrFenced.
func (s *Store) OpenWriter(ctx context.Context, id engine.EngineID, n int) (engine.Writer, error) {
	w := &Writer{s: s, engine: id, n: n}
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
		return nil, errors.Join(engine.ErrFenced, w.Close())
	}
	return w, nil
}

// Close closes the writer's connection.
func (w *Writer) Close() error {
	w.s.lineage.forget(w)
	return w.hangUp()
}

func (w *Writer) hangUp() error {
	var err error
	if w.conn != nil {
		if err = w.conn.Close(); errors.Is(err, sql.ErrConnDone) {
			err = nil // the driver found it broken before
		}
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	w.db, w.conn, w.stmts = nil, nil, nil
	return err
}

// A connectError says that nothing was sent, for want of a connection.
type connectError struct{ error }

// Unwrap returns the cause.
func (e connectError) Unwrap() error { return e.error }

// connect opens the connection, unless there is one to the present server.
// Returns *engine.LossError, else a connectError.
func (w *Writer) connect(ctx context.Context) error {
	if w.conn != nil && w.s.lineage.stale(w.line) {
		w.cut()
		// It leads to a server that was replaced: how it closes does not matter.
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
	w.db, w.stmts = sql.OpenDB(connector{c, w.s}), make(map[string]*sql.Stmt)
	w.db.SetMaxOpenConns(1)
	if w.conn, err = w.db.Conn(ctx); err != nil {
		var wrong *engine.WrongServerError
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

// cut closes the socket under the connection: whoever waits for an answer gets
// an error, and what was sent has an unknown outcome.
func (w *Writer) cut() {
	if c := w.raw.Swap(nil); c != nil {
		// A second close of a socket that the driver has closed is an error
		// nobody needs.
		_ = (*c).Close()
	}
}

// answered calls fn, which waits for the server, and cuts the connection when
// ctx ends or the answer takes too long. fn gets a context that cannot be
// cancelled: the driver would spend a goroutine per call on one that can, and a
// second connection to cancel with.
func (w *Writer) answered(ctx context.Context, fn func(ctx context.Context) error) error {
	defer context.AfterFunc(ctx, w.cut)()
	defer time.AfterFunc(answerLimit, w.cut).Stop()
	return fn(context.WithoutCancel(ctx))
}

// queryRow runs one of the big statements and scans its row. It is prepared
// once, unless a pooler gives every transaction another session.
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

// transact runs fn in a transaction of the connection; fn says whether to keep
// what it did. After an error of COMMIT itself the outcome may be open.
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

// A verdict says what an error means for the transitions that were sent.
type verdict int

const (
	unknown  verdict = iota + 1 // they may have landed
	taken                       // nothing landed: a key of the batch is taken
	refused                     // nothing landed: a row is impossible
	failed                      // nothing landed, for a reason outside the rows
	deferred                    // nothing landed, and trying again may help
)

// judge sorts errors by SQLSTATE. What the server did not say is unknown.
func judge(err error) verdict {
	state := sqlstate(err)
	class := state
	if len(state) > 2 {
		class = state[:2]
	}
	switch {
	case state == "", class == "08", state == "57P01", state == "57P02", state == "57P03":
		return unknown
	case state == "23505":
		return taken
	case class == "22", class == "23", class == "54":
		return refused
	case class == "40", state == "57014", state == "55P03", strings.HasPrefix(state, "25P"), state == "25006", state == "26000", state == "42P05":
		return deferred
	}
	return failed
}

// token mints a commit's token: the engine's number and a number of ours.
func (w *Writer) token() int64 {
	return int64(w.engine)<<32 | int64(w.s.tokens.Add(1))
}

// backoff waits before the n-th further try, or until ctx ends.
func backoff(ctx context.Context, n int) error {
	t := time.NewTimer(min(10*time.Millisecond<<min(n, 10), time.Second))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Commit lands a batch. Returns ErrFenced.
func (w *Writer) Commit(ctx context.Context, items []engine.Transition) ([]engine.Outcome, error) {
	if err := engine.ValidateBatch(items); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]engine.Outcome, len(items))
	send := make([]engine.Transition, 0, len(items))
	where := make([]int, 0, len(items)) // index in items of each of send
	for i := range items {
		if err := items[i].Validate(); err != nil {
			out[i].Err = err
			continue
		}
		send, where = append(send, items[i]), append(where, i)
	}
	if len(send) == 0 {
		return out, nil
	}
	c := commit{w: w, token: w.token(), items: send, out: make([]engine.Outcome, len(send))}
	if err := c.land(ctx, 0, len(send), false); err != nil {
		return nil, err
	}
	for i, o := range c.out {
		out[where[i]] = o
	}
	return out, nil
}

// A commit is one batch on its way.
type commit struct {
	w     *Writer
	token int64
	items []engine.Transition
	out   []engine.Outcome
	split bool // a part of it may have landed: from here on only an answer ends it
}

// giveUp is how often a commit is tried again where nothing has landed.
const giveUp = 5

// land sends items[from:to] until their outcome is known. open says that an
// earlier sending of them may have landed.
func (c *commit) land(ctx context.Context, from, to int, open bool) error {
	c.w.batch.fill(c.items[from:to])
	ifNone := open // the form that survives conflicts
	var last error
	for try := 0; ; try++ {
		if try > 0 {
			if err := backoff(ctx, try); err != nil {
				return fmt.Errorf("%w (last: %w)", err, wrap("commit: outcome unknown", last))
			}
		}
		alive, landed, err := c.send(ctx, ifNone)
		if err == nil {
			if err = c.settle(ctx, from, to, open, alive, landed); err == nil || errors.Is(err, engine.ErrFenced) {
				return err
			}
			open, ifNone = true, true // some landed, and who wrote the others could not be read
		}
		var (
			lost    *engine.LossError
			nothing connectError
		)
		switch v := judge(err); {
		case errors.As(err, &lost):
			return err
		case errors.As(err, &nothing) && !open && !c.split && (try >= giveUp || !temporary(err)):
			return wrap("commit", err)
		case errors.As(err, &nothing):
		case v == unknown:
			open, ifNone = true, true
		case v == taken && !ifNone:
			ifNone, try = true, -1 // once, and at once
		case v == taken, v == refused:
			return c.bisect(ctx, from, to, open, err)
		case v == deferred && try < giveUp:
		case open || c.split:
			// Nothing landed now, but something may have before: go on.
		default:
			return wrap("commit", err)
		}
		last = err
		c.w.s.stuck("commit", try, err)
	}
}

// stuck tells people, from time to time, why something has not come to an end.
func (s *Store) stuck(what string, try int, err error) {
	if try > 0 && try%giveUp == 0 {
		s.log.Warn("the outcome is not known yet, asking again", "doing", what, "tries", try, "error", wrap(what, err))
	}
}

// temporary reports whether a connection that failed is worth another attempt.
func temporary(err error) bool {
	var wrong *engine.WrongServerError
	v := judge(err)
	return !errors.As(err, &wrong) && (v == unknown || v == deferred || sqlstate(err) == "53300")
}

// bisect finds the transition that the server refuses.
func (c *commit) bisect(ctx context.Context, from, to int, open bool, why error) error {
	if to-from == 1 {
		c.out[from].Err = wrap(fmt.Sprintf("run %d seq %d", c.items[from].Run, c.items[from].Seq), why)
		return nil
	}
	c.split = true
	mid := from + (to-from)/2
	if err := c.land(ctx, from, mid, open); err != nil {
		return err
	}
	return c.land(ctx, mid, to, open)
}

// send sends the batch once. landed is nil if all landed.
func (c *commit) send(ctx context.Context, ifNone bool) (alive bool, landed map[machine.RunID]bool, err error) {
	w := c.w
	if err := w.connect(ctx); err != nil {
		return false, nil, err
	}
	var (
		own, n int64
		ids    pq.Int64Array
	)
	err = w.answered(ctx, func(ctx context.Context) error {
		query, args := w.batch.shape(ifNone), w.batch.args(w.engine, w.n, c.token)
		if !w.s.pooled.Load() {
			return w.queryRow(ctx, query, args, &own, &n, &ids)
		}
		return w.transact(ctx, func(ctx context.Context) (bool, error) { return true, w.queryRow(ctx, query, args, &own, &n, &ids) })
	})
	if err == nil && n > 0 {
		err = w.confirm(c.token, w.batch.items, ids)
	}
	if err != nil {
		w.drop(err)
		return false, nil, err
	}
	if int(n) == len(w.batch.items) {
		return true, nil, nil
	}
	landed = make(map[machine.RunID]bool, n)
	for _, id := range ids {
		landed[machine.RunID(id)] = true
	}
	return own > 0, landed, nil
}

// errReplaced says that the server that answered had been replaced by then: what
// it confirmed counts nothing.
var errReplaced = errors.New("postgres: the server that answered has been replaced by another")

// confirm notes what has landed: one row is as good as all, since a history is
// kept up to some point. ids is nil if all landed.
func (w *Writer) confirm(token int64, items []engine.Transition, ids pq.Int64Array) error {
	t := &items[len(items)-1]
	if ids != nil {
		for i := range items {
			if slices.Contains(ids, int64(items[i].Run)) {
				t = &items[i]
			}
		}
	}
	if !w.s.lineage.confirm(w, w.line, mark{t.Run, t.Seq, token}) {
		return errReplaced
	}
	return nil
}

// drop gives up a connection that an error has broken, or that leads to a server
// which takes no writes: the next one may lead elsewhere.
func (w *Writer) drop(err error) {
	w.s.noteLost(err)
	var e *pq.Error
	if !errors.As(err, &e) || e.Fatal() || judge(err) == unknown || e.Code == "25006" || e.Code == "26000" || e.Code == "42P05" {
		w.cut()
		// The cause is err; that the broken connection does not close well adds
		// nothing.
		_ = w.hangUp()
	}
}

// settle turns an answer into outcomes. open says that an earlier sending of
// the same batch may have landed.
func (c *commit) settle(ctx context.Context, from, to int, open, alive bool, landed map[machine.RunID]bool) error {
	if landed == nil {
		for i := from; i < to; i++ {
			c.out[i] = engine.Outcome{Landed: true}
		}
		return nil
	}
	if !alive && !open && !c.split {
		return engine.ErrFenced
	}
	writers, err := c.writers(ctx)
	if err != nil {
		return err
	}
	any := false
	for i := from; i < to; i++ {
		t := &c.items[i]
		switch token, there := writers[t.Run]; {
		case landed[t.Run], there && token == c.token:
			c.out[i], any = engine.Outcome{Landed: true}, true
		case there && t.Seq == 0:
			c.out[i] = engine.Outcome{Err: engine.ErrExists}
		default:
			// Also where nothing is there because the engine was fenced meanwhile:
			// the run is another's now.
			c.out[i] = engine.Outcome{Err: engine.ErrStale}
		}
	}
	if !alive && !any && !c.split {
		return engine.ErrFenced
	}
	return nil
}

// writers reads under which token the rows of the batch stand.
func (c *commit) writers(ctx context.Context) (map[machine.RunID]int64, error) {
	w := c.w
	writers := make(map[machine.RunID]int64)
	err := w.answered(ctx, func(ctx context.Context) error {
		rows, err := w.conn.QueryContext(ctx, journalWriters, w.batch.run.bytes(), w.batch.seq.bytes())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var run, token int64
			if err := rows.Scan(&run, &token); err != nil {
				return err
			}
			writers[machine.RunID(run)] = token
		}
		return rows.Err()
	})
	if err != nil {
		w.drop(err)
		return nil, err
	}
	return writers, nil
}
