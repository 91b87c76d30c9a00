// Package firing keeps the firings of selections in PostgreSQL, and reads business tables of the
// same database.
//
// In: the calls of the role firings.Store. Out: statements on the tables engine.firing,
// engine.firing_key and engine.quarantine, and the queries of select blocks. A query of a select
// block is part of a definition. The package puts it into parentheses, and sends all values as
// parameters.
//
// The source files form layers, lowest first: rows; hand; firing.
package firing

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
)

const (
	columns = `f.firing_id, f.workflow, f.schedule, f.event, f.tick, f.workflow_id, f.opened_by, f.opened_at, f.ended_at, f.from_at, f.to_at, f.args, f.state, f.pass, f.fresh, f.watermark,
  f.selected, f.started, f.refused, f.filtered, f.quarantined, f.vanished, f.missed, f.error, f.holder, f.version, p.given`
	firingClaim = `
WITH f AS (
  UPDATE engine.firing SET holder = $1, held_until = pg_catalog.clock_timestamp() + $2::float8 * interval '1 microsecond', version = version + 1
  WHERE firing_id = (
    SELECT firing_id FROM engine.firing o WHERE state = 'open' AND held_until < pg_catalog.clock_timestamp()
      AND (o.event <> '' OR NOT EXISTS (SELECT FROM engine.firing e WHERE e.state = 'open' AND e.event = '' AND e.workflow = o.workflow AND e.schedule = o.schedule AND e.firing_id < o.firing_id))
    ORDER BY firing_id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING *
)
SELECT ` + columns + ` FROM f LEFT JOIN engine.published p USING (workflow)`
	firingRenew   = `UPDATE engine.firing SET held_until = pg_catalog.clock_timestamp() + $3::float8 * interval '1 microsecond' WHERE firing_id = $1 AND version = $2 AND state = 'open'`
	firingRelease = `
UPDATE engine.firing SET held_until = pg_catalog.clock_timestamp() + $3::float8 * interval '1 microsecond', error = $4, version = version + 1
WHERE firing_id = $1 AND version = $2 AND state = 'open'`
	firingList      = `SELECT ` + columns + ` FROM engine.firing f LEFT JOIN engine.published p USING (workflow) ORDER BY f.firing_id DESC LIMIT $1`
	firingFind      = `SELECT ` + columns + ` FROM engine.firing f LEFT JOIN engine.published p USING (workflow) WHERE f.workflow = $1 AND f.schedule = $2 AND f.tick = $3 AND f.event = ''`
	firingFindEvent = `SELECT ` + columns + ` FROM engine.firing f LEFT JOIN engine.published p USING (workflow) WHERE f.workflow = $1 AND f.event = $2 AND f.event <> ''`
	firingCancel    = `
UPDATE engine.firing SET state = 'cancelled', ended_at = pg_catalog.clock_timestamp(), error = $2, version = version + 1 WHERE firing_id = $1 AND state = 'open'`

	// firingLock locks a published workflow, so that only one transaction at a time can create
	// firings for the schedules of this workflow.
	firingLock = `SELECT FROM engine.published WHERE workflow = $1 FOR UPDATE`
	firingFrom = `SELECT max(to_at) FROM engine.firing WHERE workflow = $1 AND schedule = $2 AND to_at <= $3 AND tick <> $3`
	firingOver = `SELECT pg_catalog.count(*) FROM engine.firing WHERE workflow = $1 AND schedule = $2 AND to_at > $3 AND from_at < $3`
	firingOpen = `
INSERT INTO engine.firing AS f (workflow, schedule, tick, workflow_id, opened_by, args, runs, from_at, to_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (workflow, schedule, tick) WHERE event = '' DO UPDATE SET state = 'open', ended_at = NULL, error = '', held_until = '-infinity', version = f.version + 1
WHERE f.state = 'cancelled'`
	firingByEvent = `
INSERT INTO engine.firing (workflow, schedule, tick, workflow_id, opened_by, args, runs, event) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (workflow, event) WHERE event <> '' DO NOTHING`

	badList    = `SELECT quarantine_id, firing_id, coalesce(key, ''), at, error FROM engine.quarantine WHERE firing_id = $1 AND quarantine_id > $2 ORDER BY quarantine_id LIMIT $3`
	badExplain = `UPDATE engine.quarantine SET error = $2, at = pg_catalog.clock_timestamp() WHERE quarantine_id = $1`
	badResolve = `
WITH gone AS (DELETE FROM engine.quarantine WHERE quarantine_id = $1 RETURNING firing_id)
UPDATE engine.firing f SET quarantined = quarantined - 1, started = started + CASE WHEN $2 THEN 0 ELSE 1 END, refused = refused + CASE WHEN $2 THEN 1 ELSE 0 END
FROM gone WHERE f.firing_id = gone.firing_id`
)

// A Store implements firings.Store in a PostgreSQL database. All fields are required.
type Store struct {
	DB   func() *sql.DB // returns the pool for all statements
	Wrap func(what string, err error) error
}

func (s *Store) wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return s.Wrap(what, err)
}

func (s *Store) changed(ctx context.Context, query string, args ...any) (bool, error) {
	res, err := s.DB().ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// Columns returns the columns of a query, or an error that says why the database does not accept
// the query.
func (s *Store) Columns(ctx context.Context, q firings.Query) (list []string, err error) {
	err = s.inside(ctx, q.Lock, func(tx *sql.Tx) error {
		st := around(q)
		rows, err := tx.QueryContext(ctx, "SELECT r.*"+st.from+" LIMIT 0", st.args...)
		if err != nil {
			return err
		}
		list, err = rows.Columns()
		if err := errors.Join(err, rows.Close()); err != nil {
			return err
		}
		st = around(q)
		text := st.page(0, nil, nil, q.Repeats, 0)
		_, _, err = read(ctx, tx, text, st.args)
		return err
	})
	if err != nil {
		return nil, s.Wrap("check the query of a selection", explained(err))
	}
	return list, nil
}

// Keys returns the keys of the rows after f.Watermark, but no more than the parameter `limit` says.
func (s *Store) Keys(ctx context.Context, f *firings.Firing, q firings.Query, limit int) (keys []string, err error) {
	err = s.inside(ctx, false, func(tx *sql.Tx) error {
		st := around(q)
		text := st.keys(f.Watermark, limit)
		keys, err = readKeys(ctx, tx, text, st.args)
		return err
	})
	return keys, s.wrapped("read the keys of a selection", explained(err))
}

// Rows returns the rows with the keys q.Keys.
func (s *Store) Rows(ctx context.Context, q firings.Query) (list []firings.Row, err error) {
	err = s.inside(ctx, false, func(tx *sql.Tx) error {
		st := around(q)
		text := st.named(q.Keys)
		list, _, err = read(ctx, tx, text, st.args)
		return err
	})
	return list, s.wrapped("read rows of a selection", explained(err))
}

// Fire creates a firing. If f.Event is empty, and the same firing exists already but was cancelled,
// Fire opens that firing again.
func (s *Store) Fire(ctx context.Context, f firings.Firing, windowed bool) (added bool, err error) {
	args := string(f.Args)
	if args == "" {
		args = "{}"
	}
	if f.Event != "" {
		added, err = s.changed(ctx, firingByEvent, f.Workflow, f.Schedule, f.Tick, int64(f.WorkflowID), f.By, args, f.Runs, f.Event)
		return added, s.wrapped("open a firing", err)
	}
	err = s.inside(ctx, true, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, firingLock, f.Workflow); err != nil {
			return err
		}
		var from, to sql.NullTime
		if windowed {
			to = sql.NullTime{Time: f.Tick, Valid: true}
			if err := tx.QueryRowContext(ctx, firingFrom, f.Workflow, f.Schedule, f.Tick).Scan(&from); err != nil {
				return err
			}
			if !from.Valid {
				from = sql.NullTime{Time: f.From, Valid: true}
			}
			over, err := count(ctx, tx, firingOver, []any{f.Workflow, f.Schedule, f.Tick})
			if err != nil || over > 0 {
				return err
			}
		}
		res, err := tx.ExecContext(ctx, firingOpen, f.Workflow, f.Schedule, f.Tick, int64(f.WorkflowID), f.By, args, f.Runs, from, to)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		added = n > 0
		return err
	})
	return added, s.wrapped("open a firing", err)
}

// Claim gives the holder an open firing that no engine holds.
func (s *Store) Claim(ctx context.Context, holder string, lease time.Duration) (*firings.Firing, error) {
	return s.one(ctx, "claim a firing", firingClaim, holder, lease.Microseconds())
}

// Renew extends the lease of a claimed firing.
func (s *Store) Renew(ctx context.Context, f *firings.Firing, lease time.Duration) (bool, error) {
	ok, err := s.changed(ctx, firingRenew, f.ID, f.Version, lease.Microseconds())
	return ok, s.wrapped("renew the lease of a firing", err)
}

// Release gives a claimed firing back.
func (s *Store) Release(ctx context.Context, f *firings.Firing, pause time.Duration, why string) error {
	_, err := s.changed(ctx, firingRelease, f.ID, f.Version, pause.Microseconds(), why)
	return s.wrapped("release a firing", err)
}

// Firings returns the newest firings.
func (s *Store) Firings(ctx context.Context, limit int) ([]firings.Firing, error) {
	list, err := s.list(ctx, firingList, limit)
	return list, s.wrapped("list firings", err)
}

// Find returns the firing of a schedule at a tick.
func (s *Store) Find(ctx context.Context, workflow, schedule string, tick time.Time) (*firings.Firing, error) {
	return s.one(ctx, "find a firing", firingFind, workflow, schedule, tick)
}

// FindEvent returns the firing of an event and a workflow.
func (s *Store) FindEvent(ctx context.Context, workflow, event string) (*firings.Firing, error) {
	return s.one(ctx, "find a firing", firingFindEvent, workflow, event)
}

// Cancel ends an open firing.
func (s *Store) Cancel(ctx context.Context, id int64, why string) (bool, error) {
	ok, err := s.changed(ctx, firingCancel, id, why)
	return ok, s.wrapped("cancel a firing", err)
}

// one returns the first firing that a statement returns; nil = there is none.
func (s *Store) one(ctx context.Context, what, query string, args ...any) (*firings.Firing, error) {
	list, err := s.list(ctx, query, args...)
	if err != nil || len(list) == 0 {
		return nil, s.wrapped(what, err)
	}
	return &list[0], nil
}

func (s *Store) list(ctx context.Context, query string, args ...any) (out []firings.Firing, err error) {
	rows, err := s.DB().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			f               firings.Firing
			id              int32
			ended, from, to sql.NullTime
			r               = &f.Report
			watermark       sql.NullString
		)
		if err := rows.Scan(&f.ID, &f.Workflow, &f.Schedule, &f.Event, &f.Tick, &id, &f.By, &f.At, &ended, &from, &to, &f.Args, &f.State, &f.Pass, &f.Fresh, &watermark,
			&r.Selected, &r.Started, &r.Refused, &r.Filtered, &r.Quarantined, &r.Vanished, &r.Missed, &f.Error, &f.Holder, &f.Version, &f.Given); err != nil {
			return nil, err
		}
		f.Tick, f.At, f.WorkflowID, f.Published = f.Tick.UTC(), f.At.UTC(), store.WorkflowID(id), f.Given != nil
		if watermark.Valid {
			f.Watermark = &watermark.String
		}
		for at, null := range map[*time.Time]sql.NullTime{&f.Ended: ended, &f.From: from, &f.To: to} {
			if null.Valid {
				*at = null.Time.UTC()
			}
		}
		out = append(out, f)
	}
	return out, rows.Err()
}

// Quarantined returns the quarantined rows of a firing.
func (s *Store) Quarantined(ctx context.Context, firing, after int64, limit int) (list []firings.Bad, err error) {
	rows, err := s.DB().QueryContext(ctx, badList, firing, after, limit)
	if err != nil {
		return nil, s.Wrap("list quarantined rows", err)
	}
	defer rows.Close()
	for rows.Next() {
		var b firings.Bad
		if err := rows.Scan(&b.ID, &b.Firing, &b.Key, &b.At, &b.Error); err != nil {
			return nil, s.Wrap("list quarantined rows", err)
		}
		b.At = b.At.UTC()
		list = append(list, b)
	}
	return list, s.wrapped("list quarantined rows", rows.Err())
}

// Resolve removes an entry of the quarantine, and counts its row as started or refused.
func (s *Store) Resolve(ctx context.Context, b firings.Bad, refused bool) error {
	_, err := s.changed(ctx, badResolve, b.ID, refused)
	return s.wrapped("settle a quarantined row", err)
}

// Explain replaces the error of an entry of the quarantine.
func (s *Store) Explain(ctx context.Context, b firings.Bad) error {
	_, err := s.changed(ctx, badExplain, b.ID, b.Error)
	return s.wrapped("explain a quarantined row", err)
}
