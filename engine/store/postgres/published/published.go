// Package published keeps published workflows, their schedules, submissions of other programs, and
// events in PostgreSQL.
//
// In: the calls of the roles schedules.Store, intake.Store and events.Store. Out: statements on the
// tables engine.published, engine.schedule, engine.submission, engine.events and engine.event_key.
// The package opens no connection of its own.
package published

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

const (
	publishedPut = `
INSERT INTO engine.published (workflow, workflow_id, published_by, given, variables, events, sinks, unique_variable) VALUES ($1, $2, $3, $4, $5, $6, $7, nullif($8, ''))
ON CONFLICT (workflow) DO UPDATE SET workflow_id = excluded.workflow_id, published_at = excluded.published_at, published_by = excluded.published_by,
  given = excluded.given, variables = excluded.variables, events = excluded.events, sinks = excluded.sinks,
  unique_variable = excluded.unique_variable`
	publishedGive = `UPDATE engine.published SET given = $3 WHERE workflow = $1 AND given = $2`
	publishedDrop = `DELETE FROM engine.published WHERE workflow = $1`
	publishedList = `SELECT workflow, workflow_id, published_at, published_by, given, events FROM engine.published ORDER BY workflow`
	// schedulePut stores the schedules of a workflow. The first argument is the workflow. Each
	// other argument is the array of one column.
	schedulePut = `
INSERT INTO engine.schedule AS s (workflow, name, timetable, next_tick)
SELECT $1, n, t, x FROM ROWS FROM (pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]), pg_catalog.unnest($4::timestamptz[])) v(n, t, x)
ON CONFLICT (workflow, name) DO UPDATE SET version = s.version + 1, timetable = excluded.timetable,
  next_tick = CASE WHEN s.timetable = excluded.timetable THEN s.next_tick ELSE excluded.next_tick END`
	scheduleDrop = `DELETE FROM engine.schedule WHERE workflow = $1 AND name <> ALL ($2::text[])`
	scheduleDue  = `
SELECT workflow, name, timetable, next_tick, last_tick, last_run, paused, version, workflow_id, given FROM engine.schedule JOIN engine.published USING (workflow)
WHERE NOT paused AND next_tick < $1 ORDER BY next_tick, workflow, name LIMIT $2`
	scheduleAll = `
SELECT workflow, name, timetable, next_tick, last_tick, last_run, paused, version, workflow_id, given FROM engine.schedule JOIN engine.published USING (workflow)
ORDER BY workflow, name LIMIT $1`
	// scheduleMove changes only the schedules whose version has not changed since they were read.
	// It first locks them in the order of their names, so that two engines that change the same
	// schedules do not deadlock.
	scheduleMove = `
WITH v AS MATERIALIZED (
  SELECT * FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::int8[]), pg_catalog.unnest($4::timestamptz[]),
    pg_catalog.unnest($5::timestamptz[]), pg_catalog.unnest($6::text[]), pg_catalog.unnest($7::bool[])) v(workflow, name, version, next, last, run, paused)
), own AS MATERIALIZED (
  SELECT v.* FROM engine.schedule s JOIN v USING (workflow, name) WHERE s.version = v.version ORDER BY v.workflow, v.name FOR UPDATE OF s
)
UPDATE engine.schedule s SET next_tick = own.next, last_tick = own.last, last_run = own.run, paused = own.paused, version = s.version + 1
FROM own WHERE s.workflow = own.workflow AND s.name = own.name`
)

// A Store implements schedules.Store in a PostgreSQL database. All fields are required.
type Store struct {
	DB    func() *sql.DB // returns the pool for all statements
	Begin func(ctx context.Context) (*sql.Tx, error)
	Wrap  func(what string, err error) error // adds the name of the operation to the text of an error that is not nil
}

// Publish stores a published workflow and its schedules, in place of the former ones. Some fields
// of the former schedules stay, see schedules.Store.
func (s *Store) Publish(ctx context.Context, w schedules.Workflow, rows []schedules.Row) error {
	return s.wrapped("publish a workflow", s.publish(ctx, w, rows))
}

func (s *Store) publish(ctx context.Context, w schedules.Workflow, rows []schedules.Row) (err error) {
	var names, tables pq.StringArray
	next := make([]time.Time, 0, len(rows))
	for _, r := range rows {
		names, tables, next = append(names, r.Name), append(tables, r.Timetable), append(next, r.Next)
	}
	if names == nil {
		names, tables = pq.StringArray{}, pq.StringArray{}
	}
	given := w.Given
	if given == nil {
		given = []byte{}
	}
	variables := string(w.Variables)
	if variables == "" {
		variables = "[]"
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
	}()
	if _, err := tx.ExecContext(ctx, publishedPut, w.Name, int64(w.ID), w.By, given, variables, pq.StringArray(append([]string{}, w.Events...)), pq.StringArray(w.Sinks), w.UniqueVariable); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, scheduleDrop, w.Name, names); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, schedulePut, w.Name, names, tables, pq.Array(next)); err != nil {
		return err
	}
	return tx.Commit()
}

// wrapped does the same as Wrap, but it returns nil if err is nil.
func (s *Store) wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return s.Wrap(what, err)
}

// Withdraw removes a published workflow and its schedules.
func (s *Store) Withdraw(ctx context.Context, workflow string) (bool, error) {
	n, err := s.changed(ctx, publishedDrop, workflow)
	return n > 0, s.wrapped("withdraw a workflow", err)
}

func (s *Store) changed(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := s.DB().ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// ReplaceGiven replaces the values of the deployment variables of a published workflow, but only if
// the stored values are equal to the parameter `old`.
func (s *Store) ReplaceGiven(ctx context.Context, workflow string, old, given []byte) (bool, error) {
	n, err := s.changed(ctx, publishedGive, workflow, old, given)
	return n > 0, s.wrapped("replace variables of a published workflow", err)
}

// Published returns the published workflows, in the order of their names.
func (s *Store) Published(ctx context.Context) ([]schedules.Workflow, error) {
	rows, err := s.DB().QueryContext(ctx, publishedList)
	if err != nil {
		return nil, s.Wrap("list published workflows", err)
	}
	defer rows.Close()
	var list []schedules.Workflow
	for rows.Next() {
		var (
			w  schedules.Workflow
			id int32
			on pq.StringArray
		)
		if err := rows.Scan(&w.Name, &id, &w.At, &w.By, &w.Given, &on); err != nil {
			return nil, s.Wrap("list published workflows", err)
		}
		w.ID, w.At, w.Events = store.WorkflowID(id), w.At.UTC(), on
		list = append(list, w)
	}
	return list, s.wrapped("list published workflows", rows.Err())
}

// Schedules returns the schedules that are not paused and whose next tick is before the given time.
// If the time is zero, it returns all schedules. It returns no more schedules than the parameter
// `limit` says.
func (s *Store) Schedules(ctx context.Context, before time.Time, limit int) ([]schedules.Row, error) {
	query, args := scheduleAll, []any{limit}
	if !before.IsZero() {
		query, args = scheduleDue, []any{before, limit}
	}
	rows, err := s.DB().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.Wrap("list schedules", err)
	}
	defer rows.Close()
	var list []schedules.Row
	for rows.Next() {
		var (
			x    schedules.Row
			last sql.NullTime
			id   int32
		)
		if err := rows.Scan(&x.Workflow, &x.Name, &x.Timetable, &x.Next, &last, &x.LastRun, &x.Paused, &x.Version, &id, &x.Given); err != nil {
			return nil, s.Wrap("list schedules", err)
		}
		x.Next, x.ID = x.Next.UTC(), store.WorkflowID(id)
		if last.Valid {
			x.Last = last.Time.UTC()
		}
		list = append(list, x)
	}
	return list, s.wrapped("list schedules", rows.Err())
}

// Move replaces Next, Last, LastRun and Paused of each schedule whose version is still Row.Version.
func (s *Store) Move(ctx context.Context, rows ...schedules.Row) (int, error) {
	var (
		workflow, name, run pq.StringArray
		version             pq.Int64Array
		paused              pq.BoolArray
		next                []time.Time
		last                []sql.NullTime
	)
	for _, r := range rows {
		workflow, name, run, version = append(workflow, r.Workflow), append(name, r.Name), append(run, r.LastRun), append(version, r.Version)
		paused, next, last = append(paused, r.Paused), append(next, r.Next), append(last, sql.NullTime{Time: r.Last, Valid: !r.Last.IsZero()})
	}
	n, err := s.changed(ctx, scheduleMove, workflow, name, version, pq.Array(next), pq.Array(last), run, paused)
	return int(n), s.wrapped("move schedules", err)
}
