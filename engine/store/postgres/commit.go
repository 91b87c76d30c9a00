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

// Commit commits a batch, including submissions, with one statement. If the name, key or id
// of a submission is in dispute, Commit uses a separate transaction for it afterwards. It
// returns ErrFenced if the engine was fenced and nothing is committed. If the engine is
// fenced after a part was committed, ErrFenced is the outcome of the other submissions.
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

// A commit is one batch that is being committed.
type commit struct {
	w     *Writer
	token int64
	items []store.Transition
	out   []store.Outcome
	doubt []int // submissions that need a separate transaction, as indexes into the field items
	split bool  // bisect has split the batch, so a part of it may be committed
	cast  bool  // bisect has refused a row with the verdict suspected
}

// sortOut gives every invalid transition its outcome. It adds a submission to the field
// doubt if it cannot share a statement: its name or key occurs earlier in the batch, or its
// workflow is not known to be in the database. It returns the remaining transitions. where
// holds the index in items of each of them; nil = all remain.
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

// finish returns the outcomes. If some outcome is ErrFenced and every outcome is an error,
// it returns ErrFenced instead.
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

// giveUp is how many times an operation is repeated before its error counts.
const giveUp = 5

// A sending is a part of a batch that is sent until its outcome is known.
type sending struct {
	from, to int
	open     bool // an earlier try may have committed the part
	ifNone   bool // use the statement that tolerates conflicts
	try      int
	last     error // error of the previous try
}

// land sends items[from:to] until their outcome is known. open says that an earlier try may
// have committed them.
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
			// Some transitions are committed. For the others, it is not known who wrote the row.
			s.open, s.ifNone = true, true
		}
		if done, result := c.failed(ctx, &s, err); done {
			return result
		}
		s.last = err
		c.w.stuck("commit", s.try, s.open, err)
	}
}

// failed decides after an error whether land sends the part again. If done is true, it does
// not, and land returns result.
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
		s.ifNone, s.try = true, -1 // at once, send the statement that tolerates conflicts
	case v == taken && c.w.batch.names && s.try < giveUp:
		// Another client was faster; the conflicting row is visible now.
	case v == taken, v == refused, v == suspected && s.to-s.from > 1:
		return true, c.bisect(ctx, s.from, s.to, s.open, v, err)
	case v == suspected && (c.any() || (c.cast || s.try >= giveUp) && c.w.takes(ctx)):
		return true, c.bisect(ctx, s.from, s.to, s.open, v, err)
	case v == suspected:
		// If a single row fails, the reason may be that the server refuses all rows. Then
		// the row is not to blame, and the commit waits.
	case v == later, s.open, c.split:
		// This try committed nothing. But the next one may succeed, or an earlier one may
		// have committed the part: try again.
	default:
		return true, wrap("commit", err)
	}
	return false, nil
}

// unconnected decides after a failure to connect whether the caller tries again. This try
// has sent nothing. It returns nil to try again, or the error with which the caller gives
// up. open says that an earlier try may have committed the rows.
func (w *Writer) unconnected(ctx context.Context, what string, open bool, try int, err, last error) error {
	switch {
	case ctx.Err() != nil && last != nil:
		// The last error says more than the failure to connect again.
		return w.interrupted(what, open, ctx.Err(), fmt.Errorf("%w; then: %w", last, err))
	case !open && (try >= giveUp || !temporary(err)):
		return wrap(what, err)
	}
	return nil
}

// interrupted returns the error of an operation whose context has ended. err is the error
// of the context. last is the last error of the operation.
func (w *Writer) interrupted(what string, open bool, err, last error) error {
	if open {
		what += ": outcome unknown"
	}
	return fmt.Errorf("%w (last: %w)", err, wrap(what, last))
}

// stuck logs from time to time why an operation has not ended yet.
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
		level = slog.LevelDebug // the server does not answer: the engine itself logs that once
	}
	w.s.log.Log(context.Background(), level, said, "doing", what, "tries", try, "error", wrap(what, err))
}

// any reports whether a part of the commit is committed so far.
func (c *commit) any() bool {
	for i := range c.out {
		if c.out[i].Landed {
			return true
		}
	}
	return false
}

// bisect finds the transition that the server refuses: it sends each half of the part
// separately. The field doubt gets a submission that only conflicts with another run.
func (c *commit) bisect(ctx context.Context, from, to int, open bool, v verdict, why error) error {
	if to-from == 1 {
		if v == taken && c.items[from].Names != nil {
			c.doubt = append(c.doubt, from)
			return nil
		}
		if open {
			// The server refuses the row now, but an earlier try may have committed it.
			// This try waited until the earlier one had ended, so the table now shows the
			// final outcome.
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

// takes reports whether the server accepts rows at all. It inserts rows of a run that does
// not exist, and rolls them back.
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

// send sends the batch once. alive reports whether the writer's fence row exists. landed
// holds the committed runs; nil = all transitions are committed.
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

// settle sets the outcomes according to the answer of the server. open says that an earlier
// try of the same batch may have committed it.
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
			// There may be no row because the engine was fenced meanwhile. Then another
			// engine owns the run, so the outcome is the same.
			c.out[i] = store.Outcome{Err: store.ErrStale}
		}
	}
	if !alive && !any && !c.split {
		return store.ErrFenced
	}
	return nil
}

// stands reports whether the batch's only transition, with index i, is committed. It
// repeats until it knows or ctx ends.
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

// writers reads the journal rows with the same runs and numbers as the rows of the batch.
// It returns the token of each, by run.
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
