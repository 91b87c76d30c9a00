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

// Statements about the table place: the limits that runs share. An admitted run holds its place
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
	// placeSweep removes rows of runs that have ended: the rows of all runs that held a place, and
	// those among the first 100 rows of the line. Retention removes the others.
	placeSweep = `
DELETE FROM place WHERE run_id IN (
  SELECT p.run_id FROM (
    SELECT run_id FROM place WHERE workflow = ?1 AND key = ?2 AND admitted = 1
    UNION ALL SELECT run_id FROM (SELECT run_id FROM place WHERE workflow = ?1 AND key = ?2 AND admitted = 0 ORDER BY rank, run_id LIMIT 100)
  ) p LEFT JOIN run r ON r.run_id = p.run_id WHERE coalesce(r.state, 10) >= 10)`
	placeAdd   = `INSERT INTO place (run_id, workflow, key, slots, rank, admitted) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	placeAdmit = `UPDATE place SET admitted = 1 WHERE run_id = ?1`

	// placeLines returns each line. It jumps from line to line in the index, so it does not read all
	// runs that wait.
	placeLines = `
WITH RECURSIVE line (run_id, workflow, key) AS (
  SELECT * FROM (SELECT run_id, workflow, key FROM place WHERE admitted = 0 ORDER BY workflow, key, rank, run_id LIMIT 1)
  UNION ALL
  SELECT n.run_id, n.workflow, n.key FROM line l CROSS JOIN place n ON n.run_id = (
    SELECT p.run_id FROM place p WHERE p.admitted = 0 AND (p.workflow, p.key) > (l.workflow, l.key)
    ORDER BY p.workflow, p.key, p.rank, p.run_id LIMIT 1)
)
SELECT workflow, key FROM line`
	// placeNext returns the first ?4 runs in a line, with their owners and limits. It skips runs whose
	// owner is not alive, so that they do not stop the line.
	placeNext = `
SELECT p.run_id, r.owner, p.slots FROM place p CROSS JOIN run r ON r.run_id = p.run_id
WHERE p.workflow = ?1 AND p.key = ?2 AND p.admitted = 0 AND r.state < 10
  AND EXISTS (SELECT 1 FROM member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > ?3)
ORDER BY p.rank, p.run_id LIMIT ?4`
)

// mostNext is the largest number of runs of a line that one tick reads.
const mostNext = 1000

// A limit is the row of a run in the table place.
type limit struct {
	workflow, key string
	slots         int32
	admitted      bool
}

// place returns the limit of a run. ok is false if the run has no row in the table place.
func (x *tx) place(run status.RunID) (l limit, ok bool, err error) {
	err = x.row(placeOf, int64(run)).Scan(&l.workflow, &l.key, &l.slots, &l.admitted)
	if errors.Is(err, sql.ErrNoRows) {
		return l, false, nil
	}
	return l, err == nil, err
}

// room checks whether the run of a transition that admits it can get a place. If not, the result
// refused is naming.ErrFull, or an error that says that the run has no limit. Then only this
// transition fails. If the run holds a place already, perhaps from an earlier try, room refuses
// nothing.
func (x *tx) room(t *store.Transition) (refused, err error) {
	if !t.Admit {
		return nil, nil
	}
	l, known, err := x.place(t.Run)
	switch {
	case err != nil || l.admitted:
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

// admitted writes the row of a run in the table place. The caller has written the transition
// already.
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
	_, err := x.exec(placeAdmit, int64(t.Run))
	return err
}

// nextInLine returns the runs of an engine that are the next in line and for which there is room. It
// returns no more runs than the parameter most says.
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
		// First look at one run: if there is no room for it, the others are not read.
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

// nextOf reads the first runs of a line, at most as many as the parameter reads says. It returns those
// of the given engine for which there is room; engine 0 = of all engines. Each run has its own limit: a
// run for which there is no room stops the runs behind it.
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
