package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Statements about the table `place`: the limits that runs share. An admitted run holds its place
// while the run is open. So the statements count the open admitted runs. There is no counter.
const (
	// placeLock locks a limit until the transaction ends. So the next statement, which counts the
	// admitted runs, sees all runs that other transactions have admitted.
	placeLock = `SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat($1::text, pg_catalog.chr(10), $2::text), 7237102917307))`
	placeOf   = `SELECT workflow, key, slots FROM engine.place WHERE run_id = $1`
	placeHeld = `
SELECT pg_catalog.count(*) FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
WHERE p.workflow = $1 AND p.key = $2 AND p.admitted AND r.state < 10`
	// placeAsk returns whether the run $3 is admitted already, how many open runs are admitted, and
	// whether an open run waits in line.
	placeAsk = `
SELECT EXISTS (SELECT FROM engine.place WHERE run_id = $3::int8 AND admitted), (` + placeHeld + `), EXISTS (
  SELECT FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
  WHERE p.workflow = $1 AND p.key = $2 AND NOT p.admitted AND r.state < 10)`
	// placeSweep removes rows of runs that have ended: the rows of all runs that held a place, and
	// those among the first 100 rows of the line. Retention removes the remaining rows of ended runs.
	placeSweep = `
DELETE FROM engine.place WHERE run_id = ANY (ARRAY(
  SELECT p.run_id FROM (
    SELECT run_id FROM engine.place WHERE workflow = $1 AND key = $2 AND admitted
    UNION ALL (SELECT run_id FROM engine.place WHERE workflow = $1 AND key = $2 AND NOT admitted ORDER BY rank, run_id LIMIT 100)) p
  WHERE NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = p.run_id AND r.state < 10 OFFSET 0)))`
	placeAdd   = `INSERT INTO engine.place (run_id, workflow, key, slots, rank, admitted) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`
	placeAdmit = `UPDATE engine.place SET admitted = true WHERE run_id = $1`

	// placeNext returns those runs of the engine $1 that are the next in line and for which a place is
	// free. It jumps from line to line in the index, so it does not read all runs that wait. It skips
	// runs whose owner is not alive, and runs whose unique key is not free, so that they do not stop
	// the line. Runs in one line may have different limits. A run for which no place is free stops the
	// runs behind it. If no place is free for the first run of a line (the subquery `f`), placeNext
	// reads no other run of the line. It reads at most 1000 runs of each line.
	placeNext = `
WITH RECURSIVE line AS (
  (SELECT workflow, key FROM engine.place WHERE NOT admitted ORDER BY workflow, key, rank, run_id LIMIT 1)
  UNION ALL SELECT n.workflow, n.key FROM line l CROSS JOIN LATERAL (
    SELECT p.workflow, p.key FROM engine.place p WHERE NOT p.admitted AND (p.workflow, p.key) > (l.workflow, l.key)
    ORDER BY p.workflow, p.key, p.rank, p.run_id LIMIT 1) n
)
SELECT q.run_id FROM (
  SELECT n.run_id, n.owner, n.n, l.workflow, l.key, pg_catalog.bool_and(h.taken + n.n <= n.slots) OVER (PARTITION BY l.workflow, l.key ORDER BY n.n) AS fits
  FROM line l
  CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS taken FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
    WHERE p.workflow = l.workflow AND p.key = l.key AND p.admitted AND r.state < 10) h
  CROSS JOIN LATERAL (
    SELECT p.slots FROM engine.place p CROSS JOIN LATERAL (SELECT owner, state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
    WHERE p.workflow = l.workflow AND p.key = l.key AND NOT p.admitted AND r.state < 10
      AND EXISTS (SELECT FROM engine.member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp())
      AND NOT ` + keyWanted + `
    ORDER BY p.rank, p.run_id LIMIT 1) f
  CROSS JOIN LATERAL (
    SELECT p.run_id, p.slots, r.owner, pg_catalog.row_number() OVER (ORDER BY p.rank, p.run_id) AS n
    FROM engine.place p CROSS JOIN LATERAL (SELECT owner, state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
    WHERE h.taken < f.slots AND p.workflow = l.workflow AND p.key = l.key AND NOT p.admitted AND r.state < 10
      AND EXISTS (SELECT FROM engine.member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp())
      AND NOT ` + keyWanted + `
    ORDER BY p.rank, p.run_id LIMIT 1000) n
) q WHERE q.owner = $1::int4 AND q.fits ORDER BY q.workflow, q.key, q.n LIMIT $2::int4`

	placeHolders = `
SELECT p.run_id, coalesce(n.name, '')
FROM (SELECT run_id FROM engine.place WHERE workflow = $1 AND key = $2 AND admitted OFFSET 0) p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
LEFT JOIN engine.run_name n ON n.run_id = p.run_id
WHERE r.state < 10 ORDER BY p.run_id LIMIT $3::int4`
	placeCounts = `
SELECT (` + placeHeld + `), (
  SELECT pg_catalog.count(*) FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
  WHERE p.workflow = $1 AND p.key = $2 AND NOT p.admitted AND r.state < 10)`
)

// errNoRoom says that a transition admits a run that has no limit.
var errNoRoom = fmt.Errorf("%w: the run has no limit", errRefused)

// room locks the limit of the transition's run, and writes the row of the run in the table `place`.
// If the transition admits the run, the run takes a place. If no place is free, room returns
// naming.ErrFull. It returns no error if an earlier try of the transition has taken the place. If the
// transition admits a run that waits for its unique key, the run also takes the key. room does nothing
// if the transition does not concern a limit or a key.
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

// admit runs the statements of a transaction that admits a run which waits in line. It reports
// whether to commit.
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

// rows writes the rows of a transition. It returns whether the fence row exists, and how many
// journal rows were written.
func (s *submission) rows(ctx context.Context, t store.Transition) (own, landed int64, err error) {
	w := s.w
	w.batch.fill([]store.Transition{t})
	var ids pq.Int64Array
	err = w.queryRow(ctx, w.batch.shape(true), w.batch.args(w.engine, w.n, s.token, true), &own, &landed, &ids)
	return own, landed, err
}

// answers reports whether an error is the outcome of a transition. Any other error is a failure,
// after which the transition may be tried again.
func answers(err error) bool {
	var refusal *admission.Error
	if errors.As(err, &refusal) {
		return true
	}
	for _, known := range []error{store.ErrFenced, store.ErrExists, store.ErrStale, naming.ErrFull, naming.ErrFree, naming.ErrNoOrigin, errRefused} {
		if errors.Is(err, known) {
			return true
		}
	}
	var heir *naming.HeirError
	return errors.As(err, &heir)
}

// next returns the runs of an engine that are the next in line and for which a place is free. It
// returns no more runs than the parameter `most` says.
func (s *members) next(ctx context.Context, id store.EngineID, most int) ([]status.RunID, error) {
	rows, err := s.db.QueryContext(ctx, placeNext, int64(id), most)
	if err != nil {
		return nil, wrap("find runs that are next in line", err)
	}
	defer rows.Close()
	var next []status.RunID
	for rows.Next() {
		var run status.RunID
		if err := rows.Scan(&run); err != nil {
			return nil, wrap("find runs that are next in line", err)
		}
		next = append(next, run)
	}
	return next, wrapIf("find runs that are next in line", rows.Err())
}

// nextOfKeys adds to the tick t those runs of an engine that wait for a unique key, if the run that
// took the key last has ended. It adds a run to t.Next if the key is free, and otherwise to t.Beaten.
// It adds at most `most` runs.
func (s *members) nextOfKeys(ctx context.Context, id store.EngineID, most int, t *store.Tick) error {
	rows, err := s.db.QueryContext(ctx, keyNext, int64(id), most)
	if err != nil {
		return wrap("find runs whose key is free", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			run, by status.RunID
			held    bool
		)
		if err := rows.Scan(&run, &by, &held); err != nil {
			return wrap("find runs whose key is free", err)
		}
		if held {
			t.Beaten = append(t.Beaten, naming.Beaten{Run: run, By: by})
		} else {
			t.Next = append(t.Next, run)
		}
	}
	return wrapIf("find runs whose key is free", rows.Err())
}

// Places returns which open runs hold a place in a limit. It also counts the open runs that wait in
// line.
func (s *views) Places(ctx context.Context, workflow, key string, limit int) (naming.Places, error) {
	var p naming.Places
	counts, err := s.look(ctx, placeCounts, workflow, key)
	if err != nil {
		return p, wrap("count runs of a limit", err)
	}
	defer counts.Close()
	for counts.Next() {
		if err := counts.Scan(&p.Taken, &p.Waiting); err != nil {
			return p, wrap("count runs of a limit", err)
		}
	}
	if err := counts.Err(); err != nil {
		return p, wrap("count runs of a limit", err)
	}
	rows, err := s.look(ctx, placeHolders, workflow, key, limit)
	if err != nil {
		return p, wrap("list runs of a limit", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			run  status.RunID
			name string
		)
		if err := rows.Scan(&run, &name); err != nil {
			return p, wrap("list runs of a limit", err)
		}
		if name == "" {
			name = naming.RunName(run)
		}
		p.Open = append(p.Open, name)
	}
	return p, wrapIf("list runs of a limit", rows.Err())
}

// wrapIf returns wrap(what, err), or nil if err is nil.
func wrapIf(what string, err error) error {
	if err == nil {
		return nil
	}
	return wrap(what, err)
}
