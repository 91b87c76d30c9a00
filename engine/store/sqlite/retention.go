package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/replies"
)

// retention is the part of a Store that removes old runs.
type retention struct {
	*file
	retainMu sync.Mutex   // protects the field `examined`; only one call of Retain runs at a time
	examined status.RunID // the last run that Retain has examined; 0 = Retain begins with the oldest run
	removed  atomic.Int64 // no run with a higher id was removed; 0 = no run was removed
}

// Retained returns an upper limit for the ids of the runs that this process has removed; 0 = it has
// removed no run. The limit is set before the transaction that removes the run is committed. Other
// processes remove no runs meanwhile, because this process has the lock.
func (s *retention) Retained(context.Context) (status.RunID, error) {
	return status.RunID(s.removed.Load()), nil
}

const (
	// retainRuns lists runs in the order of their ids, which is approximately the order of their
	// creation. For each run it says whether the run ended early enough to be removed. Usually this
	// means: before the time ?3. If the workflow has its own retention, it means: longer ago than
	// this retention. If a run was moved, the retention of its new definition counts; run_moved has
	// a row for such a run. ?4 is the present time.
	retainRuns = `
SELECT r.run_id, r.created_at, coalesce(r.finished_at < coalesce(?4 - w.retention, ?3), 0)
FROM run r LEFT JOIN run_moved d ON d.run_id = r.run_id LEFT JOIN workflow w ON w.workflow_id = coalesce(d.workflow_id, r.workflow_id) WHERE r.run_id > ?1 ORDER BY r.run_id LIMIT ?2`
	// retainOwn returns the shortest retention of all workflows, in microseconds; 0 = no workflow
	// has a retention of its own.
	retainOwn = `SELECT coalesce(min(retention), 0) FROM workflow WHERE retention IS NOT NULL`
	// retainStays reports whether a run must stay. There are four reasons: a message waits for the
	// run; the run is open, or has not ended early enough; the parent exists; or a reply waits for
	// its sink, and was written after the time ?4. The second reason is checked again, because the
	// run may have changed after retainRuns listed it.
	retainStays = `
SELECT NOT EXISTS (SELECT 1 FROM run r LEFT JOIN run_moved d ON d.run_id = r.run_id LEFT JOIN workflow w ON w.workflow_id = coalesce(d.workflow_id, r.workflow_id)
    WHERE r.run_id = ?1 AND r.state >= 10 AND r.finished_at < coalesce(?3 - w.retention, ?2))
  OR EXISTS (SELECT 1 FROM inbox WHERE run_id = ?1)
  OR EXISTS (SELECT 1 FROM run_name n JOIN run p ON p.run_id = n.parent WHERE n.run_id = ?1)
  OR EXISTS (SELECT 1 FROM reply WHERE run_id = ?1 AND done = 0 AND at > ?4)`
	retainRun  = `DELETE FROM run WHERE run_id = ?1`
	retainGone = `INSERT INTO gone (run_id) VALUES (?1) ON CONFLICT DO NOTHING`
	// retainKey and retainGoal must run before retainName and retainRun, because they read the rows
	// that retainName and retainRun delete. If the run was the last one to take its key, retainKey
	// removes the row of this key. But the row stays if the run still holds the key at the time ?3,
	// or if an open run waits for the key. Then retainGoal stores in the row the name of the
	// removed run, its state and the time of its end.
	retainKey = `
DELETE FROM context WHERE run_id = ?1
  AND (workflow, key) = (SELECT w.name, n.key FROM run r JOIN workflow w USING (workflow_id) JOIN run_name n USING (run_id) WHERE r.run_id = ?1)
  AND NOT EXISTS (SELECT 1 FROM context c JOIN run r ON r.run_id = c.run_id WHERE c.workflow = context.workflow AND c.key = context.key AND ` + contextHeld + `)
  AND NOT EXISTS (SELECT 1 FROM run w WHERE w.run_id = context.next_run AND w.state < 10)`
	retainGoal = `
UPDATE context SET (ended, ended_at, run) = (SELECT r.state, r.finished_at, n.name FROM run r JOIN run_name n USING (run_id) WHERE r.run_id = ?1)
WHERE (workflow, key) = (SELECT w.name, n.key FROM run r JOIN workflow w USING (workflow_id) JOIN run_name n USING (run_id) WHERE r.run_id = ?1) AND run_id = ?1 AND ?3 <> 0`
	// retainGoals removes rows of unique keys from the table `context`. It removes a row if three
	// conditions are true: the run of the row was removed; this run held the key for a limited
	// time, which ended at the time ?1 or earlier; no open run waits for the key.
	retainGoals = `
DELETE FROM context WHERE (workflow, key) IN (
  SELECT workflow, key FROM context WHERE ended IS NOT NULL AND retain IS NOT NULL AND scope = 0 AND ended_at + retain <= ?1
    AND NOT EXISTS (SELECT 1 FROM run w WHERE w.run_id = context.next_run AND w.state < 10) ORDER BY ended_at LIMIT ?2)`
	retainName = `DELETE FROM run_name WHERE run_id = ?1`
	goneRuns   = `SELECT run_id FROM gone LIMIT ?1`
	goneDone   = `DELETE FROM gone WHERE run_id = ?1`
)

// Each statement removes a few rows of a removed run from one table. It does not remove more rows
// at once, because one row may be as large as store.MaxRowBytes. The statement on the table
// `context` removes no row: it records that the removed run does not wait for a key any more.
var goneRows = []string{
	`DELETE FROM journal WHERE rowid IN (SELECT rowid FROM journal WHERE run_id = ?1 LIMIT 32)`,
	`DELETE FROM wide WHERE rowid IN (SELECT rowid FROM wide WHERE run_id = ?1 LIMIT 4)`,
	`DELETE FROM run_step WHERE (run_id, node) IN (SELECT run_id, node FROM run_step WHERE run_id = ?1 LIMIT 128)`,
	`DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE run_id = ?1 LIMIT 32)`,
	`DELETE FROM notice WHERE (run_id, seq, state) IN (SELECT run_id, seq, state FROM notice WHERE run_id = ?1 LIMIT 32)`,
	`DELETE FROM late_reply WHERE rowid IN (SELECT rowid FROM late_reply WHERE run_id = ?1 LIMIT 32)`,
	`DELETE FROM log WHERE id IN (SELECT id FROM log WHERE run_id = ?1 LIMIT 128)`,
	snapshotDrop,
	`DELETE FROM place WHERE run_id = ?1`,
	`DELETE FROM heir WHERE run_id = ?1`,
	`DELETE FROM reply WHERE (run_id, n) IN (SELECT run_id, n FROM reply WHERE run_id = ?1 LIMIT 128)`,
	`UPDATE context SET next_run = NULL, next_scope = NULL, next_retain = NULL WHERE next_run = ?1`,
	`DELETE FROM run_moved WHERE run_id = ?1`,
}

const (
	// retainTurn is how long retention works in one transaction before it commits. Writers must
	// wait until the commit has ended.
	retainTurn = 5 * time.Millisecond
	// retainPage is how many runs are listed or removed at once.
	retainPage = 64
)

// Retain removes runs that finished before the given time. If the workflow of a run has its own
// retention, that retention counts, and not the given time. If a run was moved to another
// definition, the retention of its last definition counts. Some runs stay, see store.Retainer. One
// call examines no more runs than the parameter `limit` says. SQLite uses the freed space again,
// but the file does not become smaller.
func (s *retention) Retain(ctx context.Context, before time.Time, limit int) (stats store.RetainStats, err error) {
	s.retainMu.Lock()
	defer s.retainMu.Unlock()
	age, err := s.ages(ctx, before)
	if err != nil || age.latest.IsZero() {
		return stats, err
	}
	// Remove rows that an earlier, interrupted call of Retain has left.
	if stats.Rows, err = s.sweep(ctx); err != nil {
		return stats, err
	}
	for looked := 0; looked < limit; {
		page, through, err := s.finished(ctx, age, min(limit-looked, retainPage))
		if err != nil {
			return stats, err
		}
		runs, err := s.remove(ctx, page, age)
		stats.Runs += runs
		if err != nil {
			return stats, err
		}
		rows, err := s.sweep(ctx)
		stats.Rows, stats.Kept = stats.Rows+rows, stats.Kept+page.looked-runs
		if err != nil {
			return stats, err
		}
		looked += page.looked
		if s.examined = page.last; through {
			s.examined = 0
			freed, err := s.freeGoals(ctx, age.now)
			stats.Rows += freed
			return stats, err
		}
	}
	stats.More = true
	return stats, nil
}

// retainedAges are the times that decide which runs one call of Retain removes.
type retainedAges struct {
	before time.Time // the time given to Retain; for runs whose workflow has no retention of its own
	now    time.Time // present time, from which the retention of a workflow counts back
	latest time.Time // each removed run was created before this time; zero = no run is removed
}

func (s *retention) ages(ctx context.Context, before time.Time) (retainedAges, error) {
	age, least := retainedAges{before: before, now: now(), latest: before}, int64(0)
	err := s.query(ctx, "ask how long workflows keep their runs", retainOwn, nil, func(r row) error { return r.Scan(&least) })
	if own := age.now.Add(-time.Duration(least) * time.Microsecond); least > 0 && own.After(before) {
		age.latest = own
	}
	return age, err
}

// A retainedPage is one page of the runs that Retain examines.
type retainedPage struct {
	runs   []status.RunID // the runs that may be removed
	looked int            // number of examined runs that were created before retainedAges.latest
	last   status.RunID
}

// finished returns the next page of runs that Retain examines. The page has no more runs than the
// parameter `limit` says. The list p.runs has only those runs that finished early enough. The
// result `through` is true if this is the last page.
func (s *retention) finished(ctx context.Context, age retainedAges, limit int) (p retainedPage, through bool, err error) {
	n, end := 0, false
	err = s.query(ctx, "list finished runs", retainRuns, []any{int64(s.examined), limit, micros(age.before), micros(age.now)}, func(r row) error {
		var (
			id, created int64
			over        bool
		)
		if err := r.Scan(&id, &created, &over); err != nil {
			return err
		}
		n++
		p.last, end = status.RunID(id), created >= micros(age.latest)
		if !end {
			p.looked++
		}
		if over {
			p.runs = append(p.runs, p.last)
		}
		return nil
	})
	// This is the last page if its last run was created at the time age.latest or later. It is not
	// enough that another run of the page was created so late: older runs may follow, because the
	// clocks of engines differ.
	return p, n < limit || end, err
}

// remove removes runs of a page, a few runs in each transaction. It leaves out runs that must stay
// (retainStays). With a run it removes the row, the name and the key, unless the row of the key
// must stay (retainKey). It returns the number of removed runs.
func (s *retention) remove(ctx context.Context, p retainedPage, age retainedAges) (gone int, err error) {
	for left := p.runs; len(left) > 0; {
		took := 0
		err := s.write(ctx, "remove runs", func(tx *tx) error {
			n := 0
			for start := time.Now(); n < len(left) && (n == 0 || time.Since(start) < retainTurn); n++ {
				ok, err := s.removeRun(tx, int64(left[n]), age)
				if err != nil {
					return err
				}
				if ok {
					took++
				}
			}
			left = left[n:]
			return nil
		})
		if err != nil {
			return gone, err
		}
		gone += took
	}
	return gone, nil
}

// removeRun removes one run, unless the run must stay (retainStays). It reports whether it removed
// the run.
func (s *retention) removeRun(x *tx, run int64, age retainedAges) (bool, error) {
	// Check the row of the run before anything is removed. retainKey needs this row, too.
	var stays bool
	if err := x.row(retainStays, run, micros(age.before), micros(age.now), micros(age.now.Add(-replies.KeepFor))).Scan(&stays); err != nil || stays {
		return false, err
	}
	s.removed.Store(max(s.removed.Load(), run)) // no race: only one transaction runs at a time
	for _, query := range []string{retainKey, retainGoal} {
		if _, err := x.exec(query, run, nil, micros(age.now)); err != nil {
			return false, err
		}
	}
	for _, query := range []string{retainName, retainRun, retainGone} {
		if _, err := x.exec(query, run); err != nil {
			return false, err
		}
	}
	return true, nil
}

// freeGoals removes the rows of unique keys that removed runs do not hold any more (retainGoals).
// It returns the number of these rows.
func (s *retention) freeGoals(ctx context.Context, at time.Time) (freed int, err error) {
	for {
		n := int64(0)
		err := s.write(ctx, "remove contexts that do not hold their keys any more", func(tx *tx) (err error) {
			n, err = tx.changed(retainGoals, micros(at), retainPage)
			return err
		})
		if freed += int(n); err != nil || n < retainPage {
			return freed, err
		}
	}
}

// sweep removes the remaining rows of removed runs. It returns how many rows it removed.
func (s *retention) sweep(ctx context.Context) (rows int, err error) {
	for {
		var runs []int64
		err := s.query(ctx, "list removed runs", goneRuns, []any{retainPage}, func(r row) error {
			var id int64
			err := r.Scan(&id)
			runs = append(runs, id)
			return err
		})
		if err != nil || len(runs) == 0 {
			return rows, err
		}
		for len(runs) > 0 {
			var n, done int
			err := s.write(ctx, "remove rows", func(tx *tx) (err error) {
				n, done, err = s.sweepRuns(tx, runs)
				return err
			})
			if err != nil {
				return rows, err
			}
			rows, runs = rows+n, runs[done:]
		}
	}
}

// sweepRuns removes rows of removed runs until no row is left or the duration retainTurn has
// passed. It returns how many rows it removed, and how many of the runs have no rows left.
func (s *retention) sweepRuns(x *tx, runs []int64) (rows, done int, err error) {
	start := time.Now()
	for _, run := range runs {
		for _, query := range goneRows {
			for {
				n, err := x.changed(query, run)
				if err != nil {
					return 0, 0, err
				}
				if rows += int(n); n == 0 {
					break
				}
				if time.Since(start) > retainTurn {
					return rows, done, nil
				}
			}
		}
		if _, err := x.exec(goneDone, run); err != nil {
			return 0, 0, err
		}
		done++
	}
	return rows, done, nil
}
