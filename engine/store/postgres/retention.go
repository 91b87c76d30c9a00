package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/postgres/firing"
	"github.com/saga-engine/engine/engine/store/postgres/published"
	"github.com/saga-engine/engine/engine/store/replies"
)

const (
	// retainNote stores the greatest run id that Retain may remove. Retain stores this id before
	// it removes any run up to the id. If the row of a run with a smaller id is missing,
	// retention has removed it, and the database has not lost it.
	retainNote = `
INSERT INTO engine.setting AS s (name, value) VALUES ('retained', $1::int8::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE s.value::int8 < excluded.value::int8`
	retainTold = `SELECT coalesce(pg_catalog.max(value::int8), 0) FROM engine.setting WHERE name = 'retained'`
	// retainWindow finds the next window: the runs that one call of Retain examines. It
	// returns the number of these runs and the id of the last one.
	retainWindow = `
SELECT pg_catalog.count(*), coalesce(pg_catalog.max(run_id), 0) FROM (SELECT run_id FROM engine.run WHERE run_id > $1 AND run_id <= $2 ORDER BY run_id LIMIT $3) w`
	// retainLock locks the runs that may be removed, and returns their ids. It reads only the runs
	// that one call of Retain examines ($1 < id <= $2). It does not wait for locks: it leaves out a
	// run that another session has locked. If a run was moved, the retention of its new definition
	// counts; run_moved has a row for such a run.
	retainLock = `
SELECT r.run_id FROM engine.run r
LEFT JOIN engine.workflow w ON w.workflow_id = coalesce((SELECT d.workflow_id FROM engine.run_moved d WHERE d.run_id = r.run_id), r.workflow_id)
WHERE r.run_id > $1 AND r.run_id <= $2 AND r.state >= 10
  AND r.finished_at < coalesce(pg_catalog.clock_timestamp() - w.retention::float8 * interval '1 microsecond', $3)
ORDER BY r.run_id FOR UPDATE OF r SKIP LOCKED`
	// retainOwn returns the shortest and the longest retention of all workflows, in microseconds,
	// and the store's time. Both retentions are 0 if no workflow has a retention of its own.
	retainOwn = `SELECT coalesce(pg_catalog.min(retention), 0), coalesce(pg_catalog.max(retention), 0), pg_catalog.clock_timestamp() FROM engine.workflow`
	// retainRemove removes locked runs, with their names and keys. A run stays if a message waits
	// for it, if its parent exists, or if one of its replies waits for a sink and was written less
	// than $2 microseconds ago. If a removed run still holds its key, or if an open run waits for
	// the key, the row of the key stays, and gets the name, the state and the end of the removed
	// run. If another session has locked the row of the key, the run stays, and a later call of
	// Retain removes it.
	//
	// retainRemove is a separate statement, because it must see messages that were posted before
	// the runs were locked. A client that posts a message later waits for this transaction, and
	// then finds no run.
	retainRemove = `
WITH held AS MATERIALIZED (
  SELECT c.workflow, c.key, r.run_id, r.state, r.finished_at, n.name,
    ` + contextHeld + ` OR EXISTS (SELECT FROM engine.run w WHERE w.run_id = c.next_run AND w.state < 10 OFFSET 0) AS stays
  FROM pg_catalog.unnest($1::int8[]) v(run_id)
  JOIN engine.run r ON r.run_id = ANY (ARRAY[v.run_id]) JOIN engine.run_name n ON n.run_id = ANY (ARRAY[v.run_id]) JOIN engine.workflow w USING (workflow_id)
  JOIN engine.context c ON c.workflow = w.name AND c.key = n.key AND c.run_id = n.run_id
  FOR UPDATE OF c SKIP LOCKED
), gone AS (
  DELETE FROM engine.run r USING pg_catalog.unnest($1::int8[]) v(run_id)
  WHERE r.run_id = v.run_id AND NOT EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
    AND NOT EXISTS (SELECT FROM engine.run_name c JOIN engine.run p ON p.run_id = c.parent WHERE c.run_id = r.run_id)
    AND NOT EXISTS (SELECT FROM engine.reply q WHERE q.run_id = r.run_id AND NOT q.done AND q.at > pg_catalog.clock_timestamp() - $2::float8 * interval '1 microsecond')
    AND (r.run_id = ANY (ARRAY(SELECT run_id FROM held)) OR NOT EXISTS (
      SELECT FROM engine.run_name n JOIN engine.workflow w ON w.workflow_id = r.workflow_id
      JOIN engine.context c ON c.workflow = w.name AND c.key = n.key AND c.run_id = n.run_id WHERE n.run_id = r.run_id))
  RETURNING r.run_id
), named AS (
  DELETE FROM engine.run_name n USING gone g WHERE n.run_id = g.run_id RETURNING 1
), kept AS (
  UPDATE engine.context c SET ended = h.state, ended_at = h.finished_at, run = h.name
  FROM held h JOIN gone g USING (run_id) WHERE h.stays AND c.workflow = h.workflow AND c.key = h.key
), freed AS (
  DELETE FROM engine.context c USING held h JOIN gone g USING (run_id) WHERE NOT h.stays AND c.workflow = h.workflow AND c.key = h.key RETURNING 1
)
SELECT (SELECT pg_catalog.count(*) FROM gone), (SELECT pg_catalog.count(*) FROM named) + (SELECT pg_catalog.count(*) FROM freed)`
	// retainGoals removes rows of unique keys (engine.context) that stayed after their runs were
	// removed. It removes a row if the run held the key for a limited time, this time has passed,
	// and no open run waits for the key.
	retainGoals = `
DELETE FROM engine.context WHERE (workflow, key) IN (
  SELECT workflow, key FROM engine.context c WHERE ended IS NOT NULL AND retain IS NOT NULL AND scope = 0
    AND ended_at + retain::float8 * interval '1 microsecond' <= pg_catalog.clock_timestamp()
    AND NOT EXISTS (SELECT FROM engine.run w WHERE w.run_id = c.next_run AND w.state < 10 OFFSET 0) ORDER BY ended_at LIMIT $1 FOR UPDATE SKIP LOCKED)`
)

// The other rows of a run are removed after the run itself. A run may have tens of
// thousands of such rows, so one statement removes only up to retainRows of them. If a
// process ends before it has removed all these rows, the next process removes the rest.
const (
	retainSteps = `
DELETE FROM engine.run_step WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.run_step x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainMoved = `
DELETE FROM engine.run_moved WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.run_moved x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainAlerts = `
DELETE FROM engine.alert WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.alert x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainNotices = `
DELETE FROM engine.notice WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.notice x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainReplies = `
DELETE FROM engine.reply WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.reply x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainLate = `
DELETE FROM engine.late_reply WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.late_reply x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainLogs = `
DELETE FROM engine.log WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.log x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainSnapshots = `
DELETE FROM engine.snapshot WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.snapshot x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	retainPlaces = `
DELETE FROM engine.place WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.place x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
	// retainNext removes the ids of removed runs from the column `next_run` of the table `context`.
	// This column names the run that waits for a unique key.
	retainNext = `
UPDATE engine.context SET next_run = NULL, next_scope = NULL, next_retain = NULL WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.context x
WHERE x.next_run > $1 AND x.next_run <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.next_run) LIMIT $3 FOR UPDATE SKIP LOCKED))`
	retainHeirs = `
DELETE FROM engine.heir WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM engine.heir x
WHERE x.run_id > $1 AND x.run_id <= $2 AND NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = x.run_id) LIMIT $3))`
)

// retainRows is the largest number of rows that one statement removes.
const retainRows = 1000

// retention implements store.Retainer: it removes old runs. It keeps in memory where the next
// call of Retain begins. A new Store begins with the first run.
type retention struct {
	*access

	mu    sync.Mutex   // protects the fields below, and allows only one Retain at a time
	after status.RunID // id of the last run that Retain has examined; 0 = Retain begins with the first run
	noted status.RunID // greatest id that retainNote has stored
	// walked is true when Retain has examined all runs once. Then Retain has also removed
	// the rows that earlier processes had not removed yet.
	walked bool
}

// Retained returns an upper limit for the ids of removed runs: no engine has removed a run
// with a greater id. It returns 0 if no run was removed.
func (s *retention) Retained(ctx context.Context) (status.RunID, error) {
	var last int64
	if err := s.db.QueryRowContext(ctx, retainTold).Scan(&last); err != nil {
		return 0, wrap("read up to which id runs were removed", err)
	}
	return status.RunID(last), nil
}

// Retain removes runs that finished before the given time. If the workflow of a run has its own
// retention, that retention counts, and not the given time. If a run was moved to another
// definition, the retention of its last definition counts. Some runs stay, see retainRemove. One
// transaction removes the runs, their names and their keys. Then Retain removes the other rows of
// the runs (sweep). The last call of a pass over all runs also removes old firings, refused
// submissions and rows of unique keys. It removes the journal rows of removed runs by dropping
// partitions that have only few remaining runs.
func (s *retention) Retain(ctx context.Context, before time.Time, limit int) (store.RetainStats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest, earliest, err := s.ages(ctx, before)
	if err != nil || latest.IsZero() {
		return store.RetainStats{}, err
	}
	// Runs with greater ids were created at the time `latest` or later, so Retain does not remove
	// them.
	end := naming.FirstRunOf(latest) - 1
	var (
		stats store.RetainStats
		found int
		last  status.RunID
	)
	if end > s.noted {
		if _, err := s.db.ExecContext(ctx, retainNote, int64(end)); err != nil {
			return stats, wrap("note what retention removes", err)
		}
		s.noted = end
	}
	if err := s.db.QueryRowContext(ctx, retainWindow, int64(s.after), int64(end), limit).Scan(&found, &last); err != nil {
		return stats, wrap("find runs that ended long ago", err)
	}
	stats.More = found >= limit
	if !stats.More {
		last = end
	}
	if err := s.forget(ctx, s.after, last, before, &stats); err != nil {
		return stats, err
	}
	stats.Kept = found - stats.Runs
	if stats.Runs > 0 || !s.walked {
		if err := s.sweep(ctx, s.after, last, &stats); err != nil {
			return stats, err
		}
	}
	s.after = last
	if stats.More {
		return stats, nil
	}
	s.after, s.walked = 0, true
	if err := s.freeGoals(ctx, &stats); err != nil {
		return stats, err
	}
	gone, err := firing.Retain(ctx, s.db, before, retainRows)
	stats.Rows += gone
	if err != nil {
		return stats, wrap("remove firings that ended long ago", err)
	}
	gone, err = published.RetainSubmissions(ctx, s.db, before, retainRows)
	stats.Rows += gone
	if err != nil {
		return stats, wrap("remove submissions that were refused long ago", err)
	}
	dropped, err := s.tend(ctx, earliest, end)
	stats.Partitions = dropped
	return stats, err
}

// ages returns two times. The result `latest` limits which runs are removed: each of them finished
// before this time. It is zero if no run may be removed. The result `earliest` decides how wide the
// partitions of the journal are: the earlier it is, the wider they are. It is the time given to
// Retain. If that time is zero, `earliest` is the present time minus the longest retention of all
// workflows. The shortest retention would give many narrow partitions, and each partition makes all
// reads slower.
func (s *retention) ages(ctx context.Context, before time.Time) (latest, earliest time.Time, err error) {
	var (
		least, most int64
		now         time.Time
	)
	if err := s.db.QueryRowContext(ctx, retainOwn).Scan(&least, &most, &now); err != nil {
		return latest, earliest, wrap("ask how long workflows keep their runs", err)
	}
	latest, earliest = before, before
	if own := now.Add(-time.Duration(least) * time.Microsecond); least > 0 && own.After(latest) {
		latest = own
	}
	if earliest.IsZero() {
		earliest = now.Add(-time.Duration(most) * time.Microsecond)
	}
	return latest, earliest, nil
}

// forget removes runs with after < id <= last, with their names and keys. Each of them ended before
// the time in the parameter `before`. If the workflow of a run has its own retention, that
// retention counts, and not `before`. forget leaves out runs that another session has locked, and
// runs that must stay. The comment of retainRemove says which runs these are, and when the row of a
// key stays.
func (s *retention) forget(ctx context.Context, after, last status.RunID, before time.Time, stats *store.RetainStats) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return wrap("remove runs", err)
	}
	var old pq.Int64Array
	rows, err := tx.QueryContext(ctx, retainLock, int64(after), int64(last), before)
	if err == nil {
		old, err = int64s(rows)
	}
	if err == nil && len(old) > 0 {
		err = tx.QueryRowContext(ctx, retainRemove, old, replies.KeepFor.Microseconds()).Scan(&stats.Runs, &stats.Rows)
	}
	if err != nil {
		stats.Runs, stats.Rows = 0, 0
		return wrap("remove runs", rolledBack(tx, err))
	}
	if err := tx.Commit(); err != nil {
		stats.Runs, stats.Rows = 0, 0
		return wrap("remove runs", err)
	}
	return nil
}

// freeGoals runs retainGoals until no more rows can be removed.
func (s *retention) freeGoals(ctx context.Context, stats *store.RetainStats) error {
	for {
		res, err := s.db.ExecContext(ctx, retainGoals, retainRows)
		if err != nil {
			return wrap("remove contexts that do not hold their keys any more", err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return wrap("remove contexts that do not hold their keys any more", err)
		}
		stats.Rows += int(n)
		if n < retainRows {
			return nil
		}
	}
}

// sweep removes the steps, moves, alerts, notices, replies, late replies, logs, snapshots, places
// and heirs of removed runs. It also removes their ids from the rows of the unique keys for which
// they waited. It does this only for runs with after < id <= last.
func (s *retention) sweep(ctx context.Context, after, last status.RunID, stats *store.RetainStats) error {
	for _, query := range []string{retainSteps, retainMoved, retainAlerts, retainNotices, retainReplies, retainLate, retainLogs, retainSnapshots, retainPlaces, retainHeirs, retainNext} {
		for {
			res, err := s.db.ExecContext(ctx, query, int64(after), int64(last), retainRows)
			if err != nil {
				return wrap("remove the other rows of removed runs", err)
			}
			n, err := res.RowsAffected()
			if err != nil {
				return wrap("remove the other rows of removed runs", err)
			}
			stats.Rows += int(n)
			if n < retainRows {
				break
			}
		}
	}
	return nil
}
