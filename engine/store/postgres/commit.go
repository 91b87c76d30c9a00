package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// Commit lands a batch, submissions among it, in one statement. A submission
// whose name, key or id is in dispute goes through a transaction of its own
// afterwards. Returns ErrFenced; a submission that was still open when the
// engine was fenced, after others have landed, has it as its outcome.
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
		aside := c.doubt
		c.doubt = nil
		if err := c.land(ctx, 0, len(send), false); err != nil {
			return nil, err
		}
		if where != nil {
			for i, o := range c.out {
				all[where[i]] = o
			}
			for _, i := range c.doubt {
				aside = append(aside, where[i])
			}
			c.items, c.out, c.doubt = items, all, aside
		}
	}
	c.meet(ctx)
	for _, i := range c.doubt {
		if err := c.alone(ctx, i); err != nil {
			return nil, err
		}
	}
	return c.finish()
}

// A commit is one batch on its way.
type commit struct {
	w     *Writer
	token int64
	items []store.Transition
	out   []store.Outcome
	doubt []int // of items: submissions that must be looked at one by one
	split bool  // a part of it may have landed: from here on only an answer ends it
	cast  bool  // a row was refused for what the server did not say clearly
}

// sortOut gives what cannot be kept its outcome, and sets submissions aside
// that cannot share a statement with others: of a name or key that the batch
// holds twice all but the first, and those of a workflow that is not known to
// be there. It returns the rest; where is nil if that is everything, else the
// place in items of each of it.
func (c *commit) sortOut() (send []store.Transition, where []int) {
	names, keys := c.w.names, c.w.keys
	clear(names)
	clear(keys)
	for i := range c.items {
		t := &c.items[i]
		err := t.Validate()
		if n := t.Names; n != nil && err == nil {
			if err = n.Validate(); t.Seq != 0 {
				err = fmt.Errorf("postgres: submission of run %d begins with seq %d", t.Run, t.Seq)
			}
		}
		apart := err != nil
		if n := t.Names; n != nil && !apart {
			name, key := n.Public(t.Run), [2]string{n.Workflow, n.Key}
			if apart = n.Kept() && names[name] || n.Key != "" && keys[key] || !c.w.s.knows(t.Workflow); apart {
				c.doubt = append(c.doubt, i)
			}
			if n.Kept() {
				names[name] = true
			}
			if n.Key != "" {
				keys[key] = true
			}
		}
		c.out[i].Err = err
		switch {
		case apart && where == nil:
			send, where = append(make([]store.Transition, 0, len(c.items)), c.items[:i]...), make([]int, i, len(c.items))
			for k := range where {
				where[k] = k
			}
		case !apart && where != nil:
			send, where = append(send, *t), append(where, i)
		}
	}
	if where == nil {
		send = c.items
	}
	return send, where
}

// finish returns the outcomes, or ErrFenced if that is all there is to say.
func (c *commit) finish() ([]store.Outcome, error) {
	fenced, told := false, false
	for i := range c.out {
		switch o := &c.out[i]; {
		case errors.Is(o.Err, store.ErrFenced):
			fenced = true
		case o.Err == nil:
			told = true
			if t := &c.items[i]; o.Landed && t.Names != nil {
				o.Submitted = store.Submitted{Run: t.Run, Name: t.Names.Public(t.Run)}
			}
		}
	}
	if fenced && !told {
		return nil, store.ErrFenced
	}
	for i := range c.items {
		if t := &c.items[i]; c.out[i].Landed && t.Names != nil && *t.Owner == 0 {
			if c.w.s.notifyNow() {
				c.w.s.bell.beside(c.w.s.notifyLate)
			}
			break
		}
	}
	return c.out, nil
}

// giveUp is how often something is tried again before it counts.
const giveUp = 5

// A sending is a part of a batch that is sent until its outcome is known.
type sending struct {
	from, to int
	open     bool // an earlier sending of the part may have landed
	ifNone   bool // in the form that survives conflicts
	try      int
	last     error // of the try before
}

// land sends items[from:to] until their outcome is known. open says that an
// earlier sending of them may have landed.
func (c *commit) land(ctx context.Context, from, to int, open bool) error {
	c.w.batch.fill(c.items[from:to])
	for s := (sending{from: from, to: to, open: open, ifNone: open}); ; s.try++ {
		if s.try > 0 {
			if err := backoff(ctx, s.try); err != nil {
				return c.w.interrupted("commit", s.open || c.split, err, s.last)
			}
		}
		alive, landed, err := c.send(ctx, s.ifNone)
		if err == nil {
			if err = c.settle(ctx, from, to, s.open, alive, landed); err == nil || errors.Is(err, store.ErrFenced) {
				return err
			}
			s.open, s.ifNone = true, true // some landed, and who wrote the others could not be read
		}
		if done, result := c.failed(ctx, &s, err); done {
			return result
		}
		s.last = err
		c.w.stuck("commit", s.try, s.open, err)
	}
}

// failed decides after an error whether the part is sent again. If not, it is done with
// the given result.
func (c *commit) failed(ctx context.Context, s *sending, err error) (done bool, result error) {
	var (
		lost    *store.LossError
		nothing connectError
	)
	switch v := judge(err); {
	case errors.As(err, &lost):
		return true, err
	case errors.As(err, &nothing):
		result = c.w.unconnected(ctx, "commit", s.open || c.split, s.try, err, s.last)
		return result != nil, result
	case v == unknown:
		if !s.open {
			c.w.s.log.Warn("the outcome of a commit is not known, asking", "rows", s.to-s.from, "error", wrap("commit", err))
		}
		s.open, s.ifNone = true, true
	case v == taken && !s.ifNone:
		s.ifNone, s.try = true, -1 // once, and at once
	case v == taken && c.w.batch.names && s.try < giveUp:
		// Another client was faster; what is in the way can be seen now.
	case v == taken, v == refused, v == suspected && s.to-s.from > 1:
		return true, c.bisect(ctx, s.from, s.to, s.open, v, err)
	case v == suspected && (c.any() || (c.cast || s.try >= giveUp) && c.w.takes(ctx)):
		return true, c.bisect(ctx, s.from, s.to, s.open, v, err)
	case v == suspected:
		// One row alone cannot be told from a server that refuses everything: then
		// no row is to blame, and all wait.
	case v == later, s.open, c.split:
		// Nothing landed now, but it may later, or something did before: go on.
	default:
		return true, wrap("commit", err)
	}
	return false, nil
}

// unconnected decides after a failure to connect, by which nothing was sent: it returns
// why the caller gives up, or nil to try again. open says that something sent before may
// have landed.
func (w *Writer) unconnected(ctx context.Context, what string, open bool, try int, err, last error) error {
	switch {
	case ctx.Err() != nil && last != nil:
		// The last error says more than that connecting again failed.
		return w.interrupted(what, open, ctx.Err(), fmt.Errorf("%w; then: %w", last, err))
	case !open && (try >= giveUp || !temporary(err)):
		return wrap(what, err)
	}
	return nil
}

// interrupted says what was going on when ctx ended.
func (w *Writer) interrupted(what string, open bool, err, last error) error {
	if open {
		what += ": outcome unknown"
	}
	return fmt.Errorf("%w (last: %w)", err, wrap(what, last))
}

// stuck tells people, from time to time, why something has not come to an end.
func (w *Writer) stuck(what string, try int, open bool, err error) {
	if try <= 0 || try%giveUp != 0 {
		return
	}
	said := "the store cannot do it now, trying again"
	if open {
		said = "the outcome is not known yet, asking again"
	}
	level := slog.LevelWarn
	var nothing connectError
	if errors.As(err, &nothing) || judge(err) == unknown {
		level = slog.LevelDebug // the server is away: the engine tells that once
	}
	w.s.log.Log(context.Background(), level, said, "doing", what, "tries", try, "error", wrap(what, err))
}

// any reports whether anything of the commit has landed so far.
func (c *commit) any() bool {
	for i := range c.out {
		if c.out[i].Landed {
			return true
		}
	}
	return false
}

// bisect finds the transition that the server refuses. A submission that is in
// the way of another is no such: it is looked at later.
func (c *commit) bisect(ctx context.Context, from, to int, open bool, v verdict, why error) error {
	if to-from == 1 {
		if v == taken && c.items[from].Names != nil {
			c.doubt = append(c.doubt, from)
			return nil
		}
		if open {
			// The server refuses the row now, but it may have committed an earlier sending
			// of it. This sending waited for the earlier one to end, so the table now
			// shows the final outcome.
			mine, err := c.stands(ctx, from)
			if mine || err != nil {
				c.out[from].Landed = mine
				return err
			}
		}
		if sqlstate(why) == "22P02" && strings.Contains(why.Error(), runGone) {
			c.out[from].Err = store.ErrStale
			return nil
		}
		c.cast = c.cast || v == suspected
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

// takes reports whether the server takes rows at all, other ones than that which
// it refuses: it is asked with rows of its own that are rolled back.
func (w *Writer) takes(ctx context.Context) bool {
	if w.connect(ctx) != nil {
		return false
	}
	err := w.answered(ctx, func(ctx context.Context) error {
		return w.transact(ctx, func(ctx context.Context) (bool, error) {
			for _, q := range []string{trialJournal, trialRun, trialMove} {
				if _, err := w.conn.ExecContext(ctx, q, int64(trialID)); err != nil {
					return false, err
				}
			}
			return false, nil
		})
	})
	if err != nil {
		w.drop(err)
	}
	return err == nil
}

// send sends the batch once. landed is nil if all landed.
func (c *commit) send(ctx context.Context, ifNone bool) (alive bool, landed map[status.RunID]bool, err error) {
	w := c.w
	if err := w.connect(ctx); err != nil {
		return false, nil, err
	}
	var (
		own, n int64
		ids    pq.Int64Array
	)
	err = w.answered(ctx, func(ctx context.Context) error {
		query, args := w.batch.statement(w.engine, w.n, c.token, ifNone)
		land := func(ctx context.Context) error { return w.queryRow(ctx, query, args, &own, &n, &ids) }
		if w.s.pooled.Load() {
			return w.transact(ctx, func(ctx context.Context) (bool, error) { return true, land(ctx) })
		}
		return land(ctx)
	})
	if err == nil && int(n) != len(w.batch.items) {
		landed = make(map[status.RunID]bool, n)
		for _, id := range ids {
			landed[status.RunID(id)] = true
		}
	}
	if err == nil && n > 0 {
		err = w.confirm(c.token, w.batch.items, landed)
	}
	if err != nil {
		w.drop(err)
		return false, nil, err
	}
	return own > 0, landed, nil
}

// settle turns an answer into outcomes. open says that an earlier sending of
// the same batch may have landed.
func (c *commit) settle(ctx context.Context, from, to int, open, alive bool, landed map[status.RunID]bool) error {
	if landed == nil {
		for i := from; i < to; i++ {
			c.out[i] = store.Outcome{Landed: true}
		}
		return nil
	}
	if !alive && !open && !c.split {
		return store.ErrFenced
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
			c.out[i], any = store.Outcome{Landed: true}, true
		case t.Names != nil && alive:
			c.doubt = append(c.doubt, i)
		case t.Names != nil:
			c.out[i] = store.Outcome{Err: store.ErrFenced}
		case there && t.Seq == 0:
			c.out[i] = store.Outcome{Err: store.ErrExists}
		default:
			// Also where nothing is there because the engine was fenced meanwhile:
			// the run is another's now.
			c.out[i] = store.Outcome{Err: store.ErrStale}
		}
	}
	if !alive && !any && !c.split {
		return store.ErrFenced
	}
	return nil
}

// stands reports whether the batch's only transition, the i-th of the commit,
// has landed; it asks until it knows or ctx ends.
func (c *commit) stands(ctx context.Context, i int) (bool, error) {
	for try := 1; ; try++ {
		err := c.w.connect(ctx)
		if err == nil {
			var writers map[status.RunID]int64
			if writers, err = c.writers(ctx); err == nil {
				return writers[c.items[i].Run] == c.token, nil
			}
		}
		var lost *store.LossError
		if errors.As(err, &lost) {
			return false, err
		}
		if e := backoff(ctx, try); e != nil {
			return false, c.w.interrupted("commit", true, e, err)
		}
		c.w.stuck("commit", try, true, err)
	}
}

// writers reads under which token the rows of the batch stand.
func (c *commit) writers(ctx context.Context) (map[status.RunID]int64, error) {
	w := c.w
	writers := make(map[status.RunID]int64)
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
			writers[status.RunID(run)] = token
		}
		return rows.Err()
	})
	if err != nil {
		w.drop(err)
		return nil, err
	}
	return writers, nil
}
