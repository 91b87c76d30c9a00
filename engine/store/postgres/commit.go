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
)

// A commit is the state of one call of Writer.Commit.
type commit struct {
	w     *Writer
	token int64
	items []store.Transition
	out   []store.Outcome
	doubt []int // submissions and admissions that need a separate transaction, as indexes into items
	split bool  // the method `bisect` has split the batch, so a part of the batch may be committed
	cast  bool  // the method `bisect` has refused a row with the verdict `suspected`
}

// sortOut selects the transitions that can be committed with one statement, and returns them as the
// result `send`. It sets the outcome of each invalid transition. It puts admissions into the field
// `doubt`. It also puts each submission into `doubt` that the statement cannot check, for example
// because the same name or key occurs earlier in the batch. The result `where` has the index in
// c.items of each transition in `send`; nil = `send` has all transitions.
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
		if t.Names == nil && t.Admit && !apart {
			c.doubt, apart = append(c.doubt, i), true
		}
		if n := t.Names; n != nil && !apart {
			name, key := n.Public(t.Run), [2]string{n.Workflow, n.Key}
			if apart = needsTransaction(t) || n.Kept() && names[name] || n.Key != "" && keys[key] || !c.w.s.knows(t.Workflow); apart {
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

// finish returns the outcomes. If every outcome is an error and one of them is ErrFenced, finish
// returns the error ErrFenced instead. If the commit makes work for other engines, such as a run
// without an owner, finish sends a hint to the engines.
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
		if t := &c.items[i]; c.out[i].Landed && (t.Names != nil && *t.Owner == 0 || t.Frees || t.Replaces != nil || t.Room != nil && !t.Admit) {
			if c.w.s.notifyNow() {
				c.w.s.bell.background(c.w.s.notifyLate)
			}
			break
		}
	}
	return c.out, nil
}

// A sending is a part of a batch that the method `land` sends, again and again until the
// outcome of the part is known.
type sending struct {
	from, to int
	open     bool // an earlier try may have committed the part
	ifNone   bool // send the statement that leaves out conflicting rows
	try      int
	last     error // error of the previous try
}

// land sends the transitions items[from:to], and repeats this until it knows their
// outcomes. If `open` is true, an earlier call may have committed these transitions.
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
			if err = c.setOutcomes(ctx, from, to, s.open, alive, landed); err == nil || errors.Is(err, store.ErrFenced) {
				return err
			}
			// This try has not committed all transitions. For the others, setOutcomes could not
			// read whether an earlier try has committed them. So send the part again.
			s.open, s.ifNone = true, true
		}
		if done, result := c.failed(ctx, &s, err); done {
			return result
		}
		s.last = err
		c.w.stuck("commit", s.try, s.open, err)
	}
}

// failed handles the error of one try to send a part. If it returns false, the method `land`
// must send the part again. Otherwise `land` must return the error in `result`.
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
		s.ifNone, s.try = true, -1 // at once, send the statement that leaves out conflicting rows
	case v == taken && c.w.batch.names && s.try < maxTries:
		// Another client has committed the same name or key first. Send again: the next statement
		// sees the row of that client.
	case v == taken, v == refused, v == suspected && s.to-s.from > 1:
		return true, c.bisect(ctx, s.from, s.to, s.open, v, err)
	case v == suspected && (c.any() || (c.cast || s.try >= maxTries) && c.w.takes(ctx)):
		return true, c.bisect(ctx, s.from, s.to, s.open, v, err)
	case v == suspected:
		// A single row has failed. Perhaps the server refuses all rows at present, so send the row
		// again.
	case v == later, s.open, c.split:
		// This try committed nothing, so send the part again. The next try may succeed. Or an
		// earlier try may have committed this part, or another part of the batch may be committed:
		// then an error without outcomes would be wrong.
	default:
		return true, wrap("commit", err)
	}
	return false, nil
}

// unconnected handles a failure to connect (the parameter `err`). If the caller must try again, it
// returns nil. If not, it returns the error that the caller must return. If `open` is true, an
// earlier try may have committed the rows. The parameter `last` is the error of the previous try;
// nil = none.
func (w *Writer) unconnected(ctx context.Context, what string, open bool, try int, err, last error) error {
	switch {
	case ctx.Err() != nil && last != nil:
		// The error of the previous try says more than this failure to connect.
		return w.interrupted(what, open, ctx.Err(), fmt.Errorf("%w; then: %w", last, err))
	case !open && (try >= maxTries || !temporary(err)):
		return wrap(what, err)
	}
	return nil
}

// interrupted returns the error for an operation whose context has ended. The parameter `err`
// is the error of the context. The parameter `last` is the error of the last try. If `open` is
// true, the outcome of the operation is unknown.
func (w *Writer) interrupted(what string, open bool, err, last error) error {
	if open {
		what += ": outcome unknown"
	}
	return fmt.Errorf("%w (last: %w)", err, wrap(what, last))
}

// stuck logs why an operation has not ended yet. It logs only the tries whose number is a multiple
// of maxTries.
func (w *Writer) stuck(what string, try int, open bool, err error) {
	if try <= 0 || try%maxTries != 0 {
		return
	}
	said := "the store cannot do it now, trying again"
	if open {
		said = "the outcome is not known yet, asking again"
	}
	level := slog.LevelWarn
	var nothing connectError
	if errors.As(err, &nothing) || judge(err) == unknown {
		level = slog.LevelDebug // the server does not answer, and the engine already logs that
	}
	w.s.log.Log(context.Background(), level, said, "doing", what, "tries", try, "error", wrap(what, err))
}

// any returns true if at least one transition of the commit is committed already.
func (c *commit) any() bool {
	for i := range c.out {
		if c.out[i].Landed {
			return true
		}
	}
	return false
}

// bisect finds the transitions that the server refuses, and sets their outcomes. It sends each
// half of the part separately; land calls bisect again for a half that fails. If a single
// submission conflicts with another run, bisect adds the submission to the field `doubt`.
func (c *commit) bisect(ctx context.Context, from, to int, open bool, v verdict, why error) error {
	if to-from == 1 {
		if v == taken && c.items[from].Names != nil {
			c.doubt = append(c.doubt, from)
			return nil
		}
		if open {
			// The server refuses the row now, but an earlier try may have committed the same row.
			// The earlier try has ended, so the journal shows whether the row is committed.
			mine, err := c.landed(ctx, from)
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

// takes reports whether the server accepts new rows at present. It tries to insert rows of
// a run that does not exist, and rolls the transaction back.
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

// send sends the batch once. The result `alive` is true if the writer's fence row exists. The
// result `landed` has the runs whose transitions are committed; nil = all transitions are
// committed. After an error, `alive` and `landed` have no meaning.
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

// setOutcomes sets the outcomes of items[from:to]. Its parameters `alive` and `landed` are the
// results of the method `send`. The method `setOutcomes` returns ErrFenced if the engine was
// declared dead and nothing is committed. If `open` is true, an earlier try may have committed
// these transitions.
func (c *commit) setOutcomes(ctx context.Context, from, to int, open, alive bool, landed map[status.RunID]bool) error {
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
			// Another commit has written the journal row with this number. Or there is no such row,
			// because the engine was declared dead, and another engine takes the run over.
			c.out[i] = store.Outcome{Err: store.ErrStale}
		}
	}
	if !alive && !any && !c.split {
		return store.ErrFenced
	}
	return nil
}

// landed reports whether the transition with index i is committed. Call it only when the field
// `batch` of the writer holds this transition alone. The method `landed` asks the server again and
// again, until the server answers. It returns an error if ctx ends, or if the database has lost
// commits.
func (c *commit) landed(ctx context.Context, i int) (bool, error) {
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

// writers reads the journal rows that have the same runs and numbers as the transitions of
// the batch. It returns the token of each row, by run. A run without such a row is not in
// the result.
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

// meet searches for earlier runs that have the names or hold the keys of the submissions in the
// field `doubt`. One query searches for all submissions. If meet finds an earlier run for a
// submission, this run becomes the outcome of the submission, and meet removes the submission from
// `doubt`. If the query fails, meet changes nothing.
func (c *commit) meet(ctx context.Context) {
	w := c.w
	if len(c.doubt) == 0 || w.connect(ctx) != nil {
		return
	}
	var at, name, flow, key array
	for _, col := range []struct {
		a   *array
		oid uint32
	}{{&at, oidInt4}, {&name, oidText}, {&flow, oidText}, {&key, oidText}} {
		col.a.reset(col.oid)
	}
	for _, i := range c.doubt {
		t := &c.items[i]
		if t.Names == nil {
			continue
		}
		at.int4(int32(i))
		name.text(t.Names.Public(t.Run))
		flow.text(t.Names.Workflow)
		if t.Replaces != nil {
			key.text("") // look only for the name: this submission replaces the run that holds the key
			continue
		}
		key.text(t.Names.Key)
	}
	met := make(map[int]store.Submitted)
	err := w.answered(ctx, func(ctx context.Context) error {
		rows, err := w.conn.QueryContext(ctx, submissionsMet, at.bytes(), name.bytes(), flow.bytes(), key.bytes())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var (
				i int
				s = store.Submitted{Exists: true}
			)
			if err := rows.Scan(&i, &s.Run, &s.Name, &s.Gone); err != nil {
				return err
			}
			met[i] = s
		}
		return rows.Err()
	})
	if err != nil {
		w.drop(err)
		return
	}
	left := c.doubt[:0]
	for _, i := range c.doubt {
		// If the found run has the id of this submission, an earlier try may have committed the
		// submission. Then the submission stays in the field `doubt`, and the method `commitSingly`
		// checks it. A submission also stays there if it takes over the results and the key of
		// the found run.
		if s, ok := met[i]; ok && s.Run != c.items[i].Run && s.Run != c.items[i].Names.From {
			c.out[i] = store.Outcome{Submitted: s}
			continue
		}
		left = append(left, i)
	}
	c.doubt = left
}

// commitSingly commits one submission or admission from the field `doubt` in a separate
// transaction, and sets the outcome. If another run has the name or the key of the submission, that
// run is the outcome. The method `commitSingly` returns an error if ctx has ended, if the database
// has lost commits, or if the server cannot be reached and nothing of the batch is committed.
func (c *commit) commitSingly(ctx context.Context, i int) error {
	s := submission{w: c.w, t: c.items[i], token: c.w.token()}
	if s.t.Names != nil {
		s.name = s.t.Names.Public(s.t.Run)
	}
	open := false
	var last error
	for try := 0; ; try++ {
		if try > 0 {
			if err := backoff(ctx, try); err != nil {
				return c.w.interrupted("submit", open || c.any(), err, last)
			}
		}
		var sub store.Submitted
		err := s.once(ctx, &sub)
		if open && errors.Is(err, store.ErrFenced) {
			err = s.afterFence(ctx, &sub, err)
		}
		switch {
		case err == nil && s.t.Names == nil:
			c.out[i] = store.Outcome{Landed: true}
			return nil
		case err == nil:
			c.w.s.known(s.t.Workflow)
			c.out[i] = store.Outcome{Landed: !sub.Exists, Submitted: sub}
			return nil
		case answers(err):
			c.out[i] = store.Outcome{Err: err}
			return nil
		}
		var (
			lost    *store.LossError
			nothing connectError
		)
		switch v := judge(err); {
		case errors.As(err, &lost):
			return err
		case errors.As(err, &nothing):
			if err := c.w.unconnected(ctx, "submit", open || c.any(), try, err, last); err != nil {
				return err
			}
		case v == unknown:
			open = true
		case v == later, v == suspected && (try < maxTries || !c.any() && !c.w.takes(ctx)), v == failed && open, v == taken && try < maxTries:
		default:
			c.out[i] = store.Outcome{Err: wrap("submit", err)}
			return nil
		}
		last = err
		c.w.stuck("submit", try, open, err)
	}
}

// needsTransaction reports whether a submission has conditions that the commit statement cannot
// check.
func needsTransaction(t *store.Transition) bool {
	return t.Room != nil || t.Replaces != nil || len(t.Checks) > 0 || t.Names.From != 0
}
