package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Statements about the table `place`: the limits that runs share. An admitted run holds its place
// while the run is open. So the statements read the state in the row of the run, and no counter.
const (
	placeOf    = `SELECT workflow, key, slots, admitted FROM place WHERE run_id = ?1`
	placeTaken = `
SELECT count(*) FROM place p CROSS JOIN run r ON r.run_id = p.run_id
WHERE p.workflow = ?1 AND p.key = ?2 AND p.admitted = 1 AND r.state < 10`
	placeWaits = `
SELECT EXISTS (SELECT 1 FROM place p CROSS JOIN run r ON r.run_id = p.run_id
  WHERE p.workflow = ?1 AND p.key = ?2 AND p.admitted = 0 AND r.state < 10)`
	placeWaiting = `
SELECT count(*) FROM place p CROSS JOIN run r ON r.run_id = p.run_id
WHERE p.workflow = ?1 AND p.key = ?2 AND p.admitted = 0 AND r.state < 10`
	placeHolders = `
SELECT r.run_id, coalesce(n.name, '') FROM place p CROSS JOIN run r ON r.run_id = p.run_id LEFT JOIN run_name n ON n.run_id = r.run_id
WHERE p.workflow = ?1 AND p.key = ?2 AND p.admitted = 1 AND r.state < 10 ORDER BY r.run_id LIMIT ?3`
	// placeSweep works on one limit. It removes the row of each ended run that was admitted, or
	// that is one of the first 100 runs in line. Retention removes the remaining rows of ended
	// runs.
	placeSweep = `
DELETE FROM place WHERE run_id IN (
  SELECT p.run_id FROM (
    SELECT run_id FROM place WHERE workflow = ?1 AND key = ?2 AND admitted = 1
    UNION ALL SELECT run_id FROM (SELECT run_id FROM place WHERE workflow = ?1 AND key = ?2 AND admitted = 0 ORDER BY rank, run_id LIMIT 100)
  ) p LEFT JOIN run r ON r.run_id = p.run_id WHERE coalesce(r.state, 10) >= 10)`
	placeAdd   = `INSERT INTO place (run_id, workflow, key, slots, rank, admitted) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	placeAdmit = `UPDATE place SET admitted = 1 WHERE run_id = ?1`

	// placeLines returns each line. It finds each line with one search in the index, so it does not
	// read all runs that wait.
	placeLines = `
WITH RECURSIVE line (run_id, workflow, key) AS (
  SELECT * FROM (SELECT run_id, workflow, key FROM place WHERE admitted = 0 ORDER BY workflow, key, rank, run_id LIMIT 1)
  UNION ALL
  SELECT n.run_id, n.workflow, n.key FROM line l CROSS JOIN place n ON n.run_id = (
    SELECT p.run_id FROM place p WHERE p.admitted = 0 AND (p.workflow, p.key) > (l.workflow, l.key)
    ORDER BY p.workflow, p.key, p.rank, p.run_id LIMIT 1)
)
SELECT workflow, key FROM line`
	// placeNext returns the first ?4 runs in a line, with their owners and limits. It skips runs
	// whose owner is not alive, and runs that wait for a unique key that is not free, so that they
	// do not stop the line.
	placeNext = `
SELECT p.run_id, r.owner, p.slots FROM place p CROSS JOIN run r ON r.run_id = p.run_id
WHERE p.workflow = ?1 AND p.key = ?2 AND p.admitted = 0 AND r.state < 10
  AND EXISTS (SELECT 1 FROM member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > ?3)
  AND NOT EXISTS (SELECT 1 FROM context c LEFT JOIN run r ON r.run_id = c.run_id WHERE c.next_run = p.run_id AND ` + contextHeld + `)
ORDER BY p.rank, p.run_id LIMIT ?4`

	// keyOf returns the workflow and the unique key of a run.
	keyOf = `SELECT w.name, n.key FROM run r JOIN run_name n USING (run_id) JOIN workflow w USING (workflow_id) WHERE r.run_id = ?1 AND n.key IS NOT NULL`
	// keyState returns the run that took a key last, and the run that waits for the key; 0 = no
	// open run waits. It also returns whether the run that took the key last is open, and whether
	// this run holds the key at the time ?3.
	keyState = `
SELECT c.run_id, coalesce(w.run_id, 0), coalesce(r.state, 10) < 10, coalesce(` + contextHeld + `, 0)
FROM context c LEFT JOIN run r ON r.run_id = c.run_id LEFT JOIN run w ON w.run_id = c.next_run AND w.state < 10
WHERE c.workflow = ?1 AND c.key = ?2`
	keyAwait = `UPDATE context SET next_run = ?3, next_scope = ?4, next_retain = nullif(?5, 0) WHERE workflow = ?1 AND key = ?2`
	keyTake  = `
UPDATE context SET run_id = next_run, scope = next_scope, retain = next_retain, reset_at = NULL, ended = NULL, ended_at = NULL, run = NULL,
  next_run = NULL, next_scope = NULL, next_retain = NULL WHERE workflow = ?1 AND key = ?2 AND next_run = ?3`
	// keyOpen returns those of the runs ?1 and ?2 that are open and are not compensating.
	keyOpen = `SELECT run_id FROM run WHERE run_id IN (?1, ?2) AND state < 10 AND state <> 5`
	// keyNext returns the runs of the engine ?1 that wait for a unique key. The run that took the
	// key last (the former run) must have ended. keyNext also returns the id of the former run, and
	// whether the former run still holds the key at the time ?3. A waiting run may also wait for a
	// place. keyNext leaves out such a run if the former run does not hold the key, because
	// placeNext returns it.
	keyNext = `
SELECT c.next_run, c.run_id, coalesce(` + contextHeld + `, 0) FROM context c CROSS JOIN run w ON w.run_id = c.next_run LEFT JOIN run r ON r.run_id = c.run_id
WHERE c.next_run IS NOT NULL AND w.state < 10 AND w.owner = ?1 AND coalesce(r.state, 10) >= 10
  AND (coalesce(` + contextHeld + `, 0) OR NOT EXISTS (SELECT 1 FROM place p WHERE p.run_id = c.next_run AND p.admitted = 0))
ORDER BY c.next_run LIMIT ?2`
)

// A keyContext is the state of a unique key.
type keyContext struct {
	// The run that took the key last, and the open run that waits for the key; 0 = none.
	run, next int64
	// Whether the run in the field `run` is open, and whether it holds the key.
	open, held bool
}

// keyContext reads the state of a unique key. The result `ok` is false if the table `context` has
// no row of the key: no run has had the key, or the row was removed with its run.
func (x *tx) keyContext(workflow, key string) (c keyContext, ok bool, err error) {
	err = x.row(keyState, workflow, key, micros(now())).Scan(&c.run, &c.next, &c.open, &c.held)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}
	return c, err == nil, err
}

// takeNext checks whether the run of a transition can get the unique key for which it waits. The
// result `refused` is naming.ErrFull if another run holds the key, or if a newer run waits for the
// key. The result `keyed` is true if the run can get the key or has it already.
func (x *tx) takeNext(t *store.Transition) (keyed bool, refused, err error) {
	var workflow, key string
	err = x.row(keyOf, int64(t.Run)).Scan(&workflow, &key)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	c, known, err := x.keyContext(workflow, key)
	switch {
	case err != nil:
		return false, nil, err
	case !known:
		return false, nil, nil
	case c.run == int64(t.Run): // it has the key, perhaps from an earlier try
		return true, nil, nil
	case c.next != int64(t.Run) || c.held:
		return false, naming.ErrFull, nil
	}
	return true, nil, nil
}

// replace stores that a submitted run waits for its unique key. It posts the message t.Replaces to
// the open runs that hold the key or wait for it, except compensating runs.
func (x *tx) replace(t *store.Transition) error {
	n := t.Names
	c, _, err := x.keyContext(n.Workflow, n.Key)
	if err != nil || c.next == int64(t.Run) { // an earlier try has written it
		return err
	}
	if _, err := x.exec(keyAwait, n.Workflow, n.Key, int64(t.Run), int64(n.KeyScope.Scope), n.KeyScope.Retain.Microseconds()); err != nil {
		return err
	}
	var open []int64
	err = x.each(keyOpen, []any{c.run, c.next}, func(r row) error {
		var run int64
		err := r.Scan(&run)
		open = append(open, run)
		return err
	})
	for _, run := range open {
		if err != nil {
			return err
		}
		m := *t.Replaces
		m.Run, m.At = status.RunID(run), now()
		_, _, err = x.post(m)
	}
	return err
}

// nextOfKeys returns runs of an engine that wait for a unique key. The key of the runs in `next` is
// free. The runs in `beaten` cannot get their key.
func nextOfKeys(x *tx, engine store.EngineID, at time.Time, most int) (next []status.RunID, beaten []naming.Beaten, err error) {
	err = x.each(keyNext, []any{int64(engine), most, micros(at)}, func(r row) error {
		var (
			run, by int64
			held    bool
		)
		err := r.Scan(&run, &by, &held)
		if held {
			beaten = append(beaten, naming.Beaten{Run: status.RunID(run), By: status.RunID(by)})
		} else {
			next = append(next, status.RunID(run))
		}
		return err
	})
	return next, beaten, err
}

// mostNext is the largest number of runs that one tick reads from one line (the runs that wait for
// a place in the same limit).
const mostNext = 1000

// A limit is the row of a run in the table `place`.
type limit struct {
	workflow, key string
	slots         int32
	admitted      bool
}

// place returns the row of a run in the table `place`. The result `ok` is false if there is none.
func (x *tx) place(run status.RunID) (l limit, ok bool, err error) {
	err = x.row(placeOf, int64(run)).Scan(&l.workflow, &l.key, &l.slots, &l.admitted)
	if errors.Is(err, sql.ErrNoRows) {
		return l, false, nil
	}
	return l, err == nil, err
}

// room checks a transition that admits its run: the run must be able to get a place, and the unique
// key for which it waits. If one of them is not free, the result `refused` is naming.ErrFull. If
// the run has no limit and no key, `refused` says so. The store then refuses only this transition.
// If the run holds a place already, perhaps from an earlier try, it needs no second one.
func (x *tx) room(t *store.Transition) (refused, err error) {
	if !t.Admit {
		return nil, nil
	}
	keyed := false
	if t.Names == nil {
		if keyed, refused, err = x.takeNext(t); refused != nil || err != nil {
			return refused, err
		}
	}
	l, known, err := x.place(t.Run)
	switch {
	case err != nil || l.admitted || !known && keyed:
		return nil, err
	case !known && t.Room == nil:
		return fmt.Errorf("sqlite: run %d has no limit", t.Run), nil
	case !known:
		l = limit{workflow: t.Room.Workflow, key: t.Room.Key, slots: t.Room.Limit}
	}
	if _, err := x.exec(placeSweep, l.workflow, l.key); err != nil {
		return nil, err
	}
	var taken int32
	if err := x.row(placeTaken, l.workflow, l.key).Scan(&taken); err != nil {
		return nil, err
	}
	waits := false
	if t.Seq == 0 {
		if err := x.row(placeWaits, l.workflow, l.key).Scan(&waits); err != nil {
			return nil, err
		}
	}
	if taken >= l.slots || waits {
		return naming.ErrFull, nil
	}
	return nil, nil
}

// admitted stores what a transition changes in the tables `place` and `context`. If the transition
// has a Room, it adds the row of the run to the table `place`. If the transition admits an existing
// run, it gives the run its place, and the unique key for which the run waits. The caller has
// written the transition already.
func (x *tx) admitted(t *store.Transition) error {
	if t.Room != nil {
		if _, known, err := x.place(t.Run); known || err != nil {
			return err // an earlier try has written it
		}
		_, err := x.exec(placeAdd, int64(t.Run), t.Room.Workflow, t.Room.Key, t.Room.Limit, micros(t.Room.Rank), t.Admit)
		return err
	}
	if !t.Admit {
		return nil
	}
	if _, err := x.exec(placeAdmit, int64(t.Run)); err != nil || t.Names != nil {
		return err
	}
	var workflow, key string
	err := x.row(keyOf, int64(t.Run)).Scan(&workflow, &key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = x.exec(keyTake, workflow, key, int64(t.Run))
	}
	return err
}

// nextInLine returns the runs of an engine that are the next in line and for which a place is free.
// It returns no more runs than the parameter `most` says.
func nextInLine(x *tx, engine store.EngineID, at time.Time, most int) ([]status.RunID, error) {
	var lines []limit
	err := x.each(placeLines, nil, func(r row) error {
		var l limit
		err := r.Scan(&l.workflow, &l.key)
		lines = append(lines, l)
		return err
	})
	var next []status.RunID
	for _, l := range lines {
		if err != nil {
			return nil, err
		}
		// First read one run: if no place is free for it, do not read the other runs of the line.
		var first []status.RunID
		if first, err = nextOf(x, l, 0, at, 1); err != nil || len(first) == 0 {
			continue
		}
		var own []status.RunID
		own, err = nextOf(x, l, engine, at, mostNext)
		next = append(next, own[:min(len(own), most-len(next))]...)
	}
	return next, err
}

// nextOf reads the first runs of a line, at most as many as the parameter `reads` says. It returns
// those of them for which a place is free and whose owner is the engine in the parameter `engine`;
// 0 = any engine. Runs in one line may have different limits. A run for which no place is free
// stops the runs behind it.
func nextOf(x *tx, l limit, engine store.EngineID, at time.Time, reads int) ([]status.RunID, error) {
	var taken int32
	if err := x.row(placeTaken, l.workflow, l.key).Scan(&taken); err != nil {
		return nil, err
	}
	var next []status.RunID
	stopped := false
	err := x.each(placeNext, []any{l.workflow, l.key, micros(at), reads}, func(r row) error {
		var (
			run, owner int64
			slots      int32
		)
		if err := r.Scan(&run, &owner, &slots); err != nil {
			return err
		}
		if stopped = stopped || taken >= slots; stopped {
			return nil
		}
		taken++
		if engine == 0 || store.EngineID(owner) == engine {
			next = append(next, status.RunID(run))
		}
		return nil
	})
	return next, err
}

// Places returns which open runs hold a place in a limit. It also counts the open runs that wait in
// line.
func (s *views) Places(ctx context.Context, workflow, key string, most int) (naming.Places, error) {
	var p naming.Places
	count := func(query string, n *int) error {
		return s.query(ctx, "count runs of a limit", query, []any{workflow, key}, func(r row) error { return r.Scan(n) })
	}
	if err := errors.Join(count(placeTaken, &p.Taken), count(placeWaiting, &p.Waiting)); err != nil {
		return naming.Places{}, err
	}
	err := s.query(ctx, "list runs of a limit", placeHolders, []any{workflow, key, most}, func(r row) error {
		var (
			run  status.RunID
			name string
		)
		err := r.Scan(&run, &name)
		if name == "" {
			name = naming.RunName(run)
		}
		p.Open = append(p.Open, name)
		return err
	})
	return p, err
}
