package postgres

import (
	"context"
	"sync"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
)

const (
	// orphanList is materialized, so that it starts with the open runs of dead members, in
	// the index run_active. Otherwise the server might read the runs in the order of
	// run_id, and so all ended runs. orphanList leaves out runs at rest (parked or
	// compensation_failed, and next_check is Never) that have no message or have too many
	// deaths (store.MaxDeaths).
	orphanList = `
WITH o AS MATERIALIZED (
  SELECT run_id FROM engine.run r
  WHERE state < 10 AND owner = ANY (ARRAY(SELECT engine FROM engine.member WHERE dead UNION ALL SELECT 0 WHERE $3::bool))
    AND (state NOT IN (6, 7) OR next_check < 'infinity' OR EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
      AND NOT EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = r.run_id AND x.deaths >= 3))
)
SELECT run_id FROM o WHERE run_id > $1 ORDER BY run_id LIMIT $2`
	// orphanCheck returns which runs of a list still are orphans.
	orphanCheck = `
SELECT run_id FROM pg_catalog.unnest($1::int8[]) v(run_id) JOIN engine.run r USING (run_id)
WHERE state < 10 AND owner = ANY (ARRAY(SELECT engine FROM engine.member WHERE dead UNION ALL SELECT 0 WHERE $2::bool))
  AND (state NOT IN (6, 7) OR next_check < 'infinity' OR EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
    AND NOT EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = r.run_id AND x.deaths >= 3))
ORDER BY run_id`
)

// orphanScan is how many orphans are listed at once. No index has the open runs of dead
// members in the order of run ids; such an index would make every run more expensive. So
// each list reads all of them, and the pages are taken from the list.
const orphanScan = 1 << 16

// A walk holds the rest of a list of orphans whose first pages were returned already.
type walk struct {
	mu    sync.Mutex     // protects following fields
	after status.RunID   // the run after which the field rest continues; 0 = rest is empty
	rest  []status.RunID // the runs that were not returned yet
}

// take returns up to limit runs of the list, if the list continues after the given run.
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

// keep stores the rest of a list after its first page.
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

// runs is the part of a Store that finds and reads runs.
type runs struct {
	*access
	orphans   walk // a list that includes runs without an owner
	abandoned walk // a list that has only runs of dead members
}

// orphaned returns open runs of dead members. With unowned it also returns runs without an
// owner. It leaves out runs at rest, unless they have a message. If a caller asks for page
// after page, each after the last run of the previous page, many pages need only one list.
// A run that became an orphan after the list was made may be missing until the next list.
func (s *runs) orphaned(ctx context.Context, after status.RunID, limit int, unowned bool) ([]status.RunID, error) {
	w := &s.abandoned
	if unowned {
		w = &s.orphans
	}
	return s.walked(ctx, w, after, limit, unowned)
}

// walked returns the next page of orphans: from the rest of the walk, and if that is not
// enough, from a new list.
func (s *runs) walked(ctx context.Context, w *walk, after status.RunID, limit int, unowned bool) ([]status.RunID, error) {
	var out []status.RunID
	for len(out) < limit {
		page := w.take(after, limit-len(out))
		if len(page) == 0 {
			break
		}
		// Other engines may have taken runs of the page over since the list was made.
		still, err := s.runIDs(ctx, "list orphans", orphanCheck, runArray(page), unowned)
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

// inboxAddressed starts with the messages, because there are few of them.
const inboxAddressed = `
SELECT i.run_id FROM engine.inbox i
CROSS JOIN LATERAL (SELECT owner FROM engine.run WHERE run_id = i.run_id AND state < 10
  AND NOT (state IN (6, 7) AND next_check = 'infinity' AND EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = i.run_id AND x.deaths >= 3)) OFFSET 0) r
JOIN engine.member m ON m.engine = r.owner AND m.dead
GROUP BY i.run_id ORDER BY pg_catalog.min(i.id) LIMIT $1`

// rename replaces the run after which the walk continues. The next call of a reader names
// the last run that the reader got. The walk's page may have ended later, with runs that
// are not orphans any more.
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

// runIDs returns the run ids that a query returns.
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
