package postgres

import (
	"context"
	"sync"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
)

const (
	// orphanList is materialized so that it begins at the open runs of the dead,
	// by run_active: in the order of run_id it would walk all that have ended.
	// Left out are runs at rest: parked or compensation_failed, checked never,
	// and without a message, or with too many deaths (store.MaxDeaths).
	orphanList = `
WITH o AS MATERIALIZED (
  SELECT run_id FROM engine.run r
  WHERE state < 10 AND owner = ANY (ARRAY(SELECT engine FROM engine.member WHERE dead UNION ALL SELECT 0 WHERE $3::bool))
    AND (state NOT IN (6, 7) OR next_check < 'infinity' OR EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
      AND NOT EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = r.run_id AND x.deaths >= 3))
)
SELECT run_id FROM o WHERE run_id > $1 ORDER BY run_id LIMIT $2`
	// orphanCheck tells which runs of a list are orphans still.
	orphanCheck = `
SELECT run_id FROM pg_catalog.unnest($1::int8[]) v(run_id) JOIN engine.run r USING (run_id)
WHERE state < 10 AND owner = ANY (ARRAY(SELECT engine FROM engine.member WHERE dead UNION ALL SELECT 0 WHERE $2::bool))
  AND (state NOT IN (6, 7) OR next_check < 'infinity' OR EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
    AND NOT EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = r.run_id AND x.deaths >= 3))
ORDER BY run_id`
)

// orphanScan is how many orphans are listed at once. No index has the open runs
// of the dead by run id, and one would cost every run; so each list costs a walk
// over all of them, and pages are cut from it.
const orphanScan = 1 << 16

// A walk is the rest of a list of orphans whose first pages were handed out.
type walk struct {
	mu    sync.Mutex // protects following fields
	after status.RunID
	rest  []status.RunID
}

// take returns up to limit runs of the list, if it goes on after the given run.
func (w *walk) take(after status.RunID, limit int) []status.RunID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if after == 0 || after != w.after {
		return nil
	}
	page := w.rest[:min(limit, len(w.rest))]
	w.put(page, w.rest)
	return page
}

// keep remembers what is left of a list after its first page.
func (w *walk) keep(page, list []status.RunID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(page, list)
}

func (w *walk) put(page, list []status.RunID) {
	w.after, w.rest = 0, nil
	if len(page) > 0 && len(page) < len(list) {
		w.after, w.rest = page[len(page)-1], list[len(page):]
	}
}

// A runs finds and reads runs.
type runs struct {
	*access
	orphans   walk
	abandoned walk // leaves out runs that have no owner
}

// orphaned returns open runs of members declared dead, and those without an owner if
// unowned is set, that are not at rest or have a message. A caller that asks page after
// page, each after the last run of the one before, pays for one walk in many pages. A run
// that became an orphan since that walk began may show only in the next walk.
func (s *runs) orphaned(ctx context.Context, after status.RunID, limit int, unowned bool) ([]status.RunID, error) {
	w := &s.abandoned
	if unowned {
		w = &s.orphans
	}
	return s.walked(ctx, w, after, limit, unowned)
}

// walked returns a page of a walk over orphans, those of nobody included or not.
func (s *runs) walked(ctx context.Context, w *walk, after status.RunID, limit int, unowned bool) ([]status.RunID, error) {
	var out []status.RunID
	for len(out) < limit {
		page := w.take(after, limit-len(out))
		if len(page) == 0 {
			break
		}
		still, err := s.runIDs(ctx, "list orphans", orphanCheck, runArray(page), unowned) // others may have been faster
		if err != nil {
			return nil, err
		}
		out, after = append(out, still...), page[len(page)-1]
	}
	if len(out) < limit {
		left := limit - len(out)
		list, err := s.runIDs(ctx, "list orphans", orphanList, int64(after), max(left, orphanScan), unowned)
		if err != nil {
			return nil, err
		}
		page := list[:min(left, len(list))]
		w.keep(page, list)
		out = append(out, page...)
	} else if last := out[len(out)-1]; last != after {
		w.rename(after, last)
	}
	return out, nil
}

// inboxAddressed begins at the messages, of which there are few.
const inboxAddressed = `
SELECT i.run_id FROM engine.inbox i
CROSS JOIN LATERAL (SELECT owner FROM engine.run WHERE run_id = i.run_id AND state < 10
  AND NOT (state IN (6, 7) AND next_check = 'infinity' AND EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = i.run_id AND x.deaths >= 3)) OFFSET 0) r
JOIN engine.member m ON m.engine = r.owner AND m.dead
GROUP BY i.run_id ORDER BY pg_catalog.min(i.id) LIMIT $1`

// rename makes a list go on after another run than the last of its page.
func (w *walk) rename(from, to status.RunID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.after == from {
		w.after = to
	}
}

// runArray encodes run ids as an array argument.
func runArray(ids []status.RunID) pq.Int64Array {
	out := make(pq.Int64Array, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

// runIDs returns what a query of run ids finds.
func (s *runs) runIDs(ctx context.Context, what, query string, args ...any) ([]status.RunID, error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrap(what, err)
	}
	defer rows.Close()
	var ids []status.RunID
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, wrap(what, err)
		}
		ids = append(ids, status.RunID(id))
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(what, err)
	}
	return ids, nil
}
