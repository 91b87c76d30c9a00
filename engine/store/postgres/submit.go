package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// meet looks for the runs that have the names and keys of the submissions in doubt, with
// one query. If another run has the name or key of a submission, this run is its outcome.
// The other submissions stay in doubt. If the query fails, all of them do.
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
		at.int4(int32(i))
		name.text(t.Names.Public(t.Run))
		flow.text(t.Names.Workflow)
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
			if err := rows.Scan(&i, &s.Run, &s.Name); err != nil {
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
		// If the found run has the id of this submission, it may be from an earlier try.
		if s, ok := met[i]; ok && s.Run != c.items[i].Run {
			c.out[i] = store.Outcome{Submitted: s}
			continue
		}
		left = append(left, i)
	}
	c.doubt = left
}

// alone commits one submission in doubt in a separate transaction. This transaction shows
// which run has its name, key or id. An error means that ctx has ended, that history was
// lost, or that nothing of the whole commit is committed.
func (c *commit) alone(ctx context.Context, i int) error {
	s := submission{w: c.w, t: c.items[i], name: c.items[i].Names.Public(c.items[i].Run), token: c.w.token()}
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
		case err == nil:
			c.w.s.known(s.t.Workflow)
			c.out[i] = store.Outcome{Landed: !sub.Exists, Submitted: sub}
			return nil
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrExists), errors.Is(err, errRefused):
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
		case v == later, v == suspected && (try < giveUp || !c.any() && !c.w.takes(ctx)), v == failed && open, v == taken && try < giveUp:
		default:
			c.out[i] = store.Outcome{Err: wrap("submit", err)}
			return nil
		}
		last = err
		c.w.stuck("submit", try, open, err)
	}
}

// errRefused says that the contents of a submission are not acceptable.
var errRefused = errors.New("postgres: submission refused")

// A submission is one run that is being submitted. The row of the journal contains its
// token. So after a lost answer, a second try finds the row of the first.
type submission struct {
	w     *Writer
	t     store.Transition
	name  string
	token int64
}

// once runs the transaction of the submission once. It stores the result in sub.
func (s *submission) once(ctx context.Context, sub *store.Submitted) (err error) {
	w := s.w
	if err := w.connect(ctx); err != nil {
		return err
	}
	kept := false
	err = w.answered(ctx, func(ctx context.Context) error {
		return w.transact(ctx, func(ctx context.Context) (bool, error) {
			kept, err = s.write(ctx, sub)
			return kept, err
		})
	})
	if err == nil && kept && !w.s.lineage.confirm(w, w.line, mark{s.t.Run, 0, s.token}) {
		err = errReplaced
	}
	if err != nil && !errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrExists) && !errors.Is(err, errRefused) {
		w.drop(err)
	}
	return err
}

// write runs the statements of the transaction, and reports whether to commit. Locks are
// taken in the same order as in the commit statement: fence, name, key, journal.
func (s *submission) write(ctx context.Context, sub *store.Submitted) (keep bool, err error) {
	w, n := s.w, s.t.Names
	var open, named, known bool
	claim := ""
	if n.Kept() {
		claim = s.name
	}
	err = w.conn.QueryRowContext(ctx, runNameClaim, int64(w.engine), int64(w.n), int64(s.t.Run), claim, n.Key, int64(s.t.Workflow)).Scan(&open, &named, &known)
	switch {
	case err != nil:
		return false, err
	case !open:
		return false, store.ErrFenced
	case !known:
		return false, fmt.Errorf("%w: run %d: no such workflow: %d", errRefused, s.t.Run, s.t.Workflow)
	case !named && n.Kept():
		return false, s.found(ctx, sub)
	}
	if n.Key != "" {
		if held, err := s.claimKey(ctx, sub); held || err != nil {
			return false, err
		}
	}
	t := s.t
	t.Names = nil // the names are written already
	w.batch.fill([]store.Transition{t})
	var (
		own, landed int64
		ids         pq.Int64Array
	)
	if err := w.queryRow(ctx, w.batch.shape(true), w.batch.args(w.engine, w.n, s.token, true), &own, &landed, &ids); err != nil {
		return false, err
	}
	if landed == 0 { // the id is in use, perhaps by an earlier try of this submission
		token, err := s.writer(ctx)
		if err == nil && token != s.token {
			err = store.ErrExists
		}
		if err != nil {
			return false, err
		}
	}
	*sub = store.Submitted{Run: s.t.Run, Name: s.name}
	return true, nil
}

// found handles a name or an id that is in use: by an earlier try of this submission, by
// the run that has the name, or by another run.
func (s *submission) found(ctx context.Context, sub *store.Submitted) error {
	token, err := s.writer(ctx)
	if err != nil {
		return err
	}
	if token == s.token {
		*sub = store.Submitted{Run: s.t.Run, Name: s.name}
		return nil
	}
	var run int64
	err = s.w.conn.QueryRowContext(ctx, runNameHolder, s.name).Scan(&run, &sub.Name)
	if noRows(err) {
		return store.ErrExists
	}
	sub.Run, sub.Exists = status.RunID(run), err == nil
	return err
}

// writer returns the token of the run's first row; 0 = there is none.
func (s *submission) writer(ctx context.Context) (int64, error) {
	var run, token int64
	s.w.batch.fill([]store.Transition{s.t})
	err := s.w.conn.QueryRowContext(ctx, journalWriters, s.w.batch.run.bytes(), s.w.batch.seq.bytes()).Scan(&run, &token)
	if noRows(err) {
		return 0, nil
	}
	return token, err
}

// claimKey takes the key, unless a run holds it. The first statement locks the row of the
// key. Only the statement after it sees what another transaction has committed before. A
// run that does not exist any more holds no key.
func (s *submission) claimKey(ctx context.Context, sub *store.Submitted) (held bool, err error) {
	n := s.t.Names
	var holder int64
	if err := s.w.conn.QueryRowContext(ctx, contextClaim, n.Workflow, n.Key, int64(s.t.Run)).Scan(&holder); err != nil {
		return false, err
	}
	if status.RunID(holder) == s.t.Run {
		return false, nil
	}
	var (
		state int16
		name  string
	)
	err = s.w.conn.QueryRowContext(ctx, contextHolder, holder).Scan(&state, &name)
	if err != nil && !noRows(err) {
		return false, err
	}
	if err == nil && storekit.HoldsKey(status.RunState(state)) {
		*sub = store.Submitted{Run: status.RunID(holder), Name: name, Exists: true}
		return true, nil
	}
	_, err = s.w.conn.ExecContext(ctx, contextReplace, n.Workflow, n.Key, int64(s.t.Run))
	return false, err
}

// afterFence handles a submission whose answer was lost and whose engine was fenced before
// it could ask again. Fencing waited for the submission, so the present rows are final. It
// returns fenced if the submission is not committed.
func (s *submission) afterFence(ctx context.Context, sub *store.Submitted, fenced error) error {
	token, err := s.writer(ctx)
	switch {
	case err != nil:
		return err
	case token == s.token:
		*sub = store.Submitted{Run: s.t.Run, Name: s.name}
		return nil
	}
	return fenced
}
