package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/postgres/admission"
)

// A submission is one run that is submitted in a separate transaction. If the transition has no
// names, the run exists already, and the transaction admits it. The journal row contains the token
// of the submission. So after a lost answer, the next try can recognize a row that an earlier try
// has committed.
type submission struct {
	w     *Writer
	t     store.Transition
	name  string
	token int64
	over  replaced // set by claimKey
}

// The type replaced says which runs a submission replaces; all fields 0 = it replaces none.
type replaced struct {
	holder int64 // run that took the key last
	next   int64 // open run that waits for the key; 0 = none
	open   int64 // holder, or next if holder has ended; the submission may wait while this run is open
}

// once runs the transaction of the submission once, and stores the result in `sub`: the new
// run, or the earlier run with the name or key.
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
	if err == nil && kept && !w.s.lineage.confirm(w, w.line, mark{s.t.Run, s.t.Seq, s.token}) {
		err = errReplaced
	}
	if err != nil && !answers(err) {
		w.drop(err)
	}
	return err
}

// write runs the statements of the transaction, and reports whether to commit. Locks are taken in
// the same order as in the commit statement: fence, name, key, heir, checked rows, limit, journal,
// run rows. If the submission replaces a run, it locks the row of that run last (replace).
func (s *submission) write(ctx context.Context, sub *store.Submitted) (keep bool, err error) {
	w, n := s.w, s.t.Names
	if n == nil {
		return s.admit(ctx)
	}
	var open, named, known bool
	claim := ""
	if n.Kept() {
		claim = s.name
	}
	err = w.conn.QueryRowContext(ctx, runNameClaim, int64(w.engine), int64(w.n), int64(s.t.Run), claim, n.Key, int64(s.t.Workflow), originOf(n)).Scan(&open, &named, &known)
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
		if held, err := s.claimKey(ctx, n, sub); held || err != nil {
			return false, err
		}
	}
	if n.From != 0 {
		if err := s.inherit(ctx); err != nil {
			return false, err
		}
	}
	if mine, err := s.checked(ctx); mine || err != nil {
		*sub = store.Submitted{Run: s.t.Run, Name: s.name}
		return false, err
	}
	if err := s.room(ctx); err != nil {
		return false, err
	}
	t := s.t
	t.Names = nil // the names are written already
	_, landed, err := s.rows(ctx, t)
	if err != nil {
		return false, err
	}
	if landed == 0 { // the id is in use; perhaps an earlier try has committed this submission
		token, err := s.writer(ctx)
		if err == nil && token != s.token {
			err = store.ErrExists
		}
		if err != nil {
			return false, err
		}
	} else if held, err := s.replace(ctx, sub); held || err != nil {
		return false, err
	}
	*sub = store.Submitted{Run: s.t.Run, Name: s.name}
	return true, nil
}

// rows writes the rows of a transition. It returns whether the fence row exists, and how many
// journal rows were written.
func (s *submission) rows(ctx context.Context, t store.Transition) (own, landed int64, err error) {
	w := s.w
	w.batch.fill([]store.Transition{t})
	var ids pq.Int64Array
	err = w.queryRow(ctx, w.batch.shape(true), w.batch.args(w.engine, w.n, s.token, true), &own, &landed, &ids)
	return own, landed, err
}

// checkLock locks the id of a run until the transaction ends. Only submissions with checks use it.
const checkLock = `SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('check ', $1::int8), 7237102917307))`

// checked runs the checks of the submission, unless the run is in the store already. A run that was
// accepted is not checked again: a check could refuse it now, because rows have changed since. If
// an earlier try has committed this submission, the result `mine` is true. If another submission
// has committed the run, the error is ErrExists.
//
// First, checked waits for the lock of checkLock. An earlier try whose answer was lost may hold
// this lock until its transaction ends.
func (s *submission) checked(ctx context.Context) (mine bool, err error) {
	if len(s.t.Checks) == 0 {
		return false, nil
	}
	if _, err := s.w.conn.ExecContext(ctx, checkLock, int64(s.t.Run)); err != nil {
		return false, err
	}
	switch token, err := s.writer(ctx); {
	case err != nil:
		return false, err
	case token == s.token:
		return true, nil
	case token != 0:
		return false, store.ErrExists
	}
	return false, admission.Run(ctx, s.w.conn, s.t.Checks)
}

// found is called if the name or the id of the submission is in use. If an earlier try has
// committed this submission, found sets `sub` to the new run. If another run has the name, it
// sets `sub` to that run. Otherwise another run has the id, and found returns ErrExists.
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

// writer returns the token of the journal row with the run and seq of s.t; 0 = there is no such
// row.
func (s *submission) writer(ctx context.Context) (int64, error) {
	var run, token int64
	s.w.batch.fill([]store.Transition{s.t})
	err := s.w.conn.QueryRowContext(ctx, journalWriters, s.w.batch.run.bytes(), s.w.batch.seq.bytes()).Scan(&run, &token)
	if noRows(err) {
		return 0, nil
	}
	return token, err
}

// claimKey gives the unique key to the run of the submission. But if another run holds the key or
// waits for it, claimKey sets `sub` to that run and returns true. There is one exception: if the
// holder is the run whose results the new run takes over (Names.From), the new run takes the key.
// If the submission replaces other runs, claimKey only sets the field `over`, and the method
// `replace` does the rest. If there is no run to replace, claimKey returns naming.ErrFree.
//
// The first statement locks the row of the key, and may have to wait for the lock. It does not see
// what other transactions commit during this wait, but the second statement does. So only the
// second statement reads the states of the other runs. A run that does not exist any more holds its
// key only if the row of the key says so.
func (s *submission) claimKey(ctx context.Context, n *naming.Names, sub *store.Submitted) (held bool, err error) {
	var holder int64
	s.over = replaced{}
	args := []any{n.Workflow, n.Key, int64(s.t.Run), int64(n.KeyScope.Scope), n.KeyScope.Retain.Microseconds()}
	if err := s.w.conn.QueryRowContext(ctx, contextClaim, args...).Scan(&holder); err != nil {
		return false, err
	}
	if status.RunID(holder) == s.t.Run {
		if s.t.Replaces != nil {
			return false, naming.ErrFree // the error rolls the transaction back, which also removes the new row of the key
		}
		return false, nil
	}
	found := store.Submitted{Run: status.RunID(holder), Exists: true}
	var (
		holds, open bool
		next        int64
		waiter      string
	)
	err = s.w.conn.QueryRowContext(ctx, contextHolder, n.Workflow, n.Key).Scan(&found.Name, &found.Gone, &holds, &open, &next, &waiter)
	switch {
	case err != nil:
		return false, err
	case s.t.Replaces != nil && !holds && next == 0:
		return false, naming.ErrFree
	case s.t.Replaces != nil && (open || !holds):
		if s.over = (replaced{holder: holder, next: next, open: holder}); !open {
			s.over.open = next
		}
		return false, nil
	case holds && found.Run != n.From:
		*sub = found
		return true, nil
	case next != 0:
		*sub = store.Submitted{Run: status.RunID(next), Name: waiter, Exists: true}
		return true, nil
	}
	_, err = s.w.conn.ExecContext(ctx, contextReplace, args...)
	return false, err
}

const (
	// keyAwait stores that the run $3 waits for a unique key, but only if the run $6 is open. It
	// locks the row of the run $6, so that this run cannot end before the transaction has ended.
	keyAwait = `
WITH open AS MATERIALIZED (SELECT 1 FROM engine.run WHERE run_id = $6 AND state < 10 FOR SHARE)
UPDATE engine.context SET next_run = $3, next_scope = $4, next_retain = nullif($5::int8, 0) FROM open WHERE workflow = $1 AND key = $2`
	// keyCancel puts a message into the inbox of each of the runs $1 and $2 that is open and not
	// compensating. If an inbox already has a message with the same text in the column `dedup`,
	// keyCancel adds no message to it.
	keyCancel = `
INSERT INTO engine.inbox AS i (run_id, at, kind, by, dedup, data)
SELECT r.run_id, pg_catalog.clock_timestamp(), $3::int2, $4::text, nullif($5::text, ''), $6::bytea
FROM engine.run r WHERE r.run_id = ANY (ARRAY[$1::int8, $2::int8]) AND r.state < 10 AND r.state <> 5 ORDER BY r.run_id FOR KEY SHARE
ON CONFLICT (run_id, dedup) DO NOTHING`
	// keyOf returns the name of a run's workflow, and the run's unique key.
	keyOf = `
SELECT w.name, n.key FROM engine.run r JOIN engine.run_name n ON n.run_id = ANY (ARRAY[r.run_id]) JOIN engine.workflow w USING (workflow_id)
WHERE r.run_id = $1 AND n.key IS NOT NULL`
	// keyLock locks the row of a unique key. It returns the run that took the key last, and the run
	// that waits for the key; 0 = none.
	keyLock = `SELECT run_id, coalesce(next_run, 0) FROM engine.context WHERE workflow = $1 AND key = $2 FOR UPDATE`
	keyTake = `
UPDATE engine.context SET run_id = next_run, scope = next_scope, retain = next_retain, reset_at = NULL, ended = NULL, ended_at = NULL, run = NULL,
  next_run = NULL, next_scope = NULL, next_retain = NULL WHERE workflow = $1 AND key = $2`
)

// replace stores that the run of the submission waits for its unique key. It also posts the message
// of the submission to the open runs that the submission replaces. It does nothing if the
// submission replaces no run.
//
// claimKey does not lock the row of the run that has the key. So this run may succeed after
// claimKey has read its state. Then the goal is reached, and no submission may begin to wait for
// the key. Therefore the last statement of the transaction checks that the run with the key is
// open, and locks its row until the COMMIT. The lock comes last, because the commits of the run's
// owner wait for it. If the run has ended, replace calls claimKey again. If another run holds the
// key then, replace sets `sub` to that run and returns true.
func (s *submission) replace(ctx context.Context, sub *store.Submitted) (held bool, err error) {
	n, m := s.t.Names, s.t.Replaces
	for s.over.open != 0 {
		if _, err := s.w.conn.ExecContext(ctx, keyCancel, s.over.holder, s.over.next, int64(m.Kind), naming.CleanText(m.By), m.Dedup, m.Data); err != nil {
			return false, err
		}
		waits, err := s.w.conn.ExecContext(ctx, keyAwait, n.Workflow, n.Key, int64(s.t.Run), int64(n.KeyScope.Scope), n.KeyScope.Retain.Microseconds(), s.over.open)
		if err != nil {
			return false, err
		}
		if rows, err := waits.RowsAffected(); rows > 0 || err != nil {
			return false, err
		}
		if held, err := s.claimKey(ctx, n, sub); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// takeKey gives the unique key to the run of an admission, which waits for the key. It returns
// naming.ErrFull if the key is not free, or if a newer run waits for the key. The result `keyed` is
// true if the run has the key now, perhaps from an earlier try. takeKey first locks the row of the
// key. Only then it reads the state of the run that had the key; the comment of claimKey says why.
func (s *submission) takeKey(ctx context.Context) (keyed bool, err error) {
	var (
		workflow, key, name, waiter string
		run, next                   int64
		gone, holds, open           bool
	)
	err = s.w.conn.QueryRowContext(ctx, keyOf, int64(s.t.Run)).Scan(&workflow, &key)
	if err == nil {
		err = s.w.conn.QueryRowContext(ctx, keyLock, workflow, key).Scan(&run, &next)
	}
	switch {
	case noRows(err):
		return false, nil
	case err != nil:
		return false, err
	case status.RunID(run) == s.t.Run: // it has the key, perhaps from an earlier try
		return true, nil
	case status.RunID(next) != s.t.Run:
		return false, naming.ErrFull
	}
	err = s.w.conn.QueryRowContext(ctx, contextHolder, workflow, key).Scan(&name, &gone, &holds, &open, &next, &waiter)
	switch {
	case err != nil:
		return false, err
	case holds:
		return false, naming.ErrFull
	}
	_, err = s.w.conn.ExecContext(ctx, keyTake, workflow, key)
	return true, err
}

// errNoRoom says that a transition admits a run that has no limit and no unique key.
var errNoRoom = fmt.Errorf("%w: the run has no limit", errRefused)

// room locks the limit of the transition's run, and writes the row of the run in the table `place`.
// If the transition admits the run, the run takes a place. If no place is free, room returns
// naming.ErrFull. It returns no error if an earlier try of the transition has taken the place. If
// the transition admits a run that waits for its unique key, the run also takes the key. room does
// nothing if the transition has no Room and does not admit its run.
func (s *submission) room(ctx context.Context) error {
	t, conn := &s.t, s.w.conn
	var r naming.Room
	switch {
	case t.Room != nil:
		r = *t.Room
	case !t.Admit:
		return nil
	default:
		keyed, err := s.takeKey(ctx)
		if err != nil {
			return err
		}
		err = conn.QueryRowContext(ctx, placeOf, int64(t.Run)).Scan(&r.Workflow, &r.Key, &r.Limit)
		switch {
		case noRows(err) && keyed:
			return nil
		case noRows(err):
			return errNoRoom
		case err != nil:
			return err
		}
	}
	if _, err := conn.ExecContext(ctx, placeLock, r.Workflow, r.Key); err != nil {
		return err
	}
	if t.Admit {
		if _, err := conn.ExecContext(ctx, placeSweep, r.Workflow, r.Key); err != nil {
			return err
		}
		var (
			taken             int32
			admitted, waiting bool
		)
		err := conn.QueryRowContext(ctx, placeAsk, r.Workflow, r.Key, int64(t.Run)).Scan(&admitted, &taken, &waiting)
		if err != nil {
			return err
		}
		if !admitted && (taken >= r.Limit || t.Seq == 0 && waiting) {
			return naming.ErrFull
		}
	}
	var err error
	if t.Room != nil {
		_, err = conn.ExecContext(ctx, placeAdd, int64(t.Run), r.Workflow, r.Key, int64(r.Limit), r.Rank.UTC(), t.Admit)
	} else {
		_, err = conn.ExecContext(ctx, placeAdmit, int64(t.Run))
	}
	return err
}

// admit runs the statements of a transaction that admits a run which waits in line or for its
// unique key. It reports whether to commit.
func (s *submission) admit(ctx context.Context) (keep bool, err error) {
	if err := s.room(ctx); err != nil {
		return false, err
	}
	own, landed, err := s.rows(ctx, s.t)
	switch {
	case err != nil && sqlstate(err) == "22P02" && strings.Contains(err.Error(), runGone):
		return false, store.ErrStale
	case err != nil:
		return false, err
	case own == 0:
		return false, store.ErrFenced
	case landed > 0:
		return true, nil
	}
	// The journal has a row with this number; perhaps an earlier try has written it.
	token, err := s.writer(ctx)
	if err == nil && token != s.token {
		err = store.ErrStale
	}
	return err == nil, err
}

// afterFence is called if the answer to a submission was lost, and the engine was declared dead
// before the next try. It reads whether the submission is committed. This cannot change any
// more, because Fence waited for the transaction. If the submission is committed, afterFence
// sets `sub` and returns nil. Otherwise it returns the error in the parameter `fenced`.
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

const (
	// heirClaim makes the run $2 the heir of the run $1, and returns the heir. If the run $1 has an
	// heir already, the statement waits until the transaction of that heir has ended, and returns
	// that heir. It returns no row if the run $1 does not exist or has not ended. It locks the row
	// of the run $1, so that retention does not remove this run meanwhile.
	heirClaim = `
INSERT INTO engine.heir AS h (run_id, heir) SELECT r.run_id, $2::int8 FROM engine.run r WHERE r.run_id = $1 AND r.state >= 10 FOR KEY SHARE OF r
ON CONFLICT (run_id) DO UPDATE SET heir = h.heir RETURNING h.heir`
	heirOf = `SELECT heir FROM engine.heir WHERE run_id = $1`
)

// inherit makes the run of the submission the heir of the run whose results it takes over. It
// returns a *naming.HeirError if that run has another heir, and naming.ErrNoOrigin if that run does
// not exist or has not ended.
func (s *submission) inherit(ctx context.Context) error {
	from := s.t.Names.From
	var heir int64
	err := s.w.conn.QueryRowContext(ctx, heirClaim, int64(from), int64(s.t.Run)).Scan(&heir)
	switch {
	case noRows(err):
		return naming.ErrNoOrigin
	case err == nil && status.RunID(heir) != s.t.Run:
		return &naming.HeirError{Run: from, Heir: status.RunID(heir)}
	}
	return err
}

// heirs implements naming.Heirs: it records which run has taken over the results of another run.
type heirs struct{ *access }

// Heir returns the run that has taken over the results of the given run; 0 = there is none.
func (s *heirs) Heir(ctx context.Context, run status.RunID) (status.RunID, error) {
	var heir int64
	err := s.db.QueryRowContext(ctx, heirOf, int64(run)).Scan(&heir)
	if noRows(err) {
		return 0, nil
	}
	if err != nil {
		return 0, wrap("find the heir of a run", err)
	}
	return status.RunID(heir), nil
}
