package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

const (
	publishedPut = `
INSERT INTO published (workflow, workflow_id, published_at, published_by, given, events) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (workflow) DO UPDATE SET workflow_id = excluded.workflow_id, published_at = excluded.published_at, published_by = excluded.published_by, given = excluded.given, events = excluded.events`
	publishedGive = `UPDATE published SET given = ?3 WHERE workflow = ?1 AND given = ?2`
	publishedDrop = `DELETE FROM published WHERE workflow = ?1`
	publishedList = `SELECT workflow, workflow_id, published_at, published_by, given, events FROM published ORDER BY workflow`
	schedulePut   = `
INSERT INTO schedule (workflow, name, timetable, next_tick) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (workflow, name) DO UPDATE SET version = version + 1, timetable = excluded.timetable,
  next_tick = CASE WHEN timetable = excluded.timetable THEN next_tick ELSE excluded.next_tick END`
	scheduleNames = `SELECT name FROM schedule WHERE workflow = ?1`
	scheduleDrop  = `DELETE FROM schedule WHERE workflow = ?1 AND name = ?2`
	scheduleDue   = `
SELECT workflow, name, timetable, next_tick, last_tick, last_run, paused, version, workflow_id, given FROM schedule JOIN published USING (workflow)
WHERE paused = 0 AND next_tick < ?1 ORDER BY next_tick, workflow, name LIMIT ?2`
	scheduleAll = `
SELECT workflow, name, timetable, next_tick, last_tick, last_run, paused, version, workflow_id, given FROM schedule JOIN published USING (workflow)
ORDER BY workflow, name LIMIT ?1`
	scheduleMove = `
UPDATE schedule SET next_tick = ?4, last_tick = ?5, last_run = ?6, paused = ?7, version = version + 1 WHERE workflow = ?1 AND name = ?2 AND version = ?3`
)

// published is the part of a Store that keeps published workflows and their schedules. Its methods
// also work in a store that was opened with Options.Beside.
type published struct{ *file }

// Publish stores a published workflow and its schedules, in place of the former ones. Some fields
// of the former schedules stay, see schedules.Store.
func (s *published) Publish(ctx context.Context, w schedules.Workflow, rows []schedules.Row) error {
	on, err := json.Marshal(append([]string{}, w.Events...))
	if err != nil {
		return fmt.Errorf("publish a workflow: %w", err)
	}
	return s.writeUnowned(ctx, "publish a workflow", func(tx *tx) error {
		if _, err := tx.exec(publishedPut, w.Name, int64(w.ID), micros(now()), w.By, blob(w.Given), string(on)); err != nil {
			return err
		}
		former := map[string]bool{}
		if err := tx.each(scheduleNames, []any{w.Name}, func(r row) error {
			var name string
			err := r.Scan(&name)
			former[name] = true
			return err
		}); err != nil {
			return err
		}
		for _, r := range rows {
			delete(former, r.Name)
			if _, err := tx.exec(schedulePut, w.Name, r.Name, r.Timetable, micros(r.Next)); err != nil {
				return err
			}
		}
		for name := range former {
			if _, err := tx.exec(scheduleDrop, w.Name, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Withdraw removes a published workflow and its schedules.
func (s *published) Withdraw(ctx context.Context, workflow string) (found bool, err error) {
	err = s.writeUnowned(ctx, "withdraw a workflow", func(tx *tx) error {
		n, err := tx.changed(publishedDrop, workflow)
		found = n > 0
		return err
	})
	return found, err
}

// ReplaceGiven replaces the values of the deployment variables of a published workflow, but only if
// the stored value equals the parameter `old`.
func (s *published) ReplaceGiven(ctx context.Context, workflow string, old, given []byte) (replaced bool, err error) {
	err = s.writeUnowned(ctx, "replace variables of a published workflow", func(tx *tx) error {
		n, err := tx.changed(publishedGive, workflow, blob(old), blob(given))
		replaced = n > 0
		return err
	})
	return replaced, err
}

// Published returns the published workflows, in the order of their names.
func (s *published) Published(ctx context.Context) (list []schedules.Workflow, err error) {
	err = s.query(ctx, "list published workflows", publishedList, nil, func(r row) error {
		var (
			w  schedules.Workflow
			id int32
			at int64
			on []byte
		)
		if err := r.Scan(&w.Name, &id, &at, &w.By, &w.Given, &on); err != nil {
			return err
		}
		err := json.Unmarshal(on, &w.Events)
		w.ID, w.At = store.WorkflowID(id), fromMicros(at)
		list = append(list, w)
		return err
	})
	return list, err
}

// Schedules returns the schedules that are not paused and whose next tick is before the given time.
// If the time is zero, it returns all schedules. It returns no more schedules than the parameter
// `limit` says.
func (s *published) Schedules(ctx context.Context, before time.Time, limit int) (list []schedules.Row, err error) {
	query, args := scheduleAll, []any{limit}
	if !before.IsZero() {
		query, args = scheduleDue, []any{micros(before), limit}
	}
	err = s.query(ctx, "list schedules", query, args, func(r row) error {
		var (
			x    schedules.Row
			next int64
			last sql.NullInt64
			id   int32
		)
		err := r.Scan(&x.Workflow, &x.Name, &x.Timetable, &next, &last, &x.LastRun, &x.Paused, &x.Version, &id, &x.Given)
		x.Next, x.ID = fromMicros(next), store.WorkflowID(id)
		if last.Valid {
			x.Last = fromMicros(last.Int64)
		}
		list = append(list, x)
		return err
	})
	return list, err
}

// Move replaces Next, Last, LastRun and Paused of each schedule whose version is still Row.Version.
func (s *published) Move(ctx context.Context, rows ...schedules.Row) (moved int, err error) {
	err = s.writeUnowned(ctx, "move schedules", func(tx *tx) error {
		moved = 0
		for _, r := range rows {
			last := sql.NullInt64{Valid: !r.Last.IsZero()}
			if last.Valid {
				last.Int64 = micros(r.Last)
			}
			n, err := tx.changed(scheduleMove, r.Workflow, r.Name, r.Version, micros(r.Next), last, r.LastRun, r.Paused)
			if err != nil {
				return err
			}
			moved += int(n)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return moved, nil
}
