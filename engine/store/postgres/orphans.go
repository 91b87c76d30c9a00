package postgres

import (
	"context"
	"sync"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
)

const (
	// orphanList lists orphans: open runs of dead members and, if $3 is true, open runs without an
	// owner. Its first part is materialized, so that the server finds the open runs in the index
	// run_active. Otherwise the server might read all runs in the order of run_id, also the ended
	// ones. A run is at rest if it is parked or compensation_failed and its next_check is Never.
	// orphanList leaves out a run at rest in two cases: the run has no message, or store.MaxDeaths
	// engines died with the run in hand.
	orphanList = `
WITH o AS MATERIALIZED (
  SELECT run_id FROM engine.run r
  WHERE state < 10 AND owner = ANY (ARRAY(SELECT engine FROM engine.member WHERE dead UNION ALL SELECT 0 WHERE $3::bool))
    AND (state NOT IN (6, 7) OR next_check < 'infinity' OR EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
      AND NOT EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = r.run_id AND x.deaths >= 3))
)
SELECT run_id FROM o WHERE run_id > $1 ORDER BY run_id LIMIT $2`
	// orphanCheck returns those of the given runs that are still orphans.
	orphanCheck = `
SELECT run_id FROM pg_catalog.unnest($1::int8[]) v(run_id) JOIN engine.run r USING (run_id)
WHERE state < 10 AND owner = ANY (ARRAY(SELECT engine FROM engine.member WHERE dead UNION ALL SELECT 0 WHERE $2::bool))
  AND (state NOT IN (6, 7) OR next_check < 'infinity' OR EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id)
    AND NOT EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = r.run_id AND x.deaths >= 3))
ORDER BY run_id`
)

// orphanScan is how many orphans one query lists. There is no index of orphans in the order
// of run ids, because such an index would make each commit slower. So each query reads all
// orphans. To make few queries, the store keeps the list, and takes the next pages from it.
const orphanScan = 1 << 16

// A walk holds those orphans of a list that the store has not returned yet.
type walk struct {
	mu    sync.Mutex     // protects the fields below
	after status.RunID   // last run of the list that was returned; 0 = `rest` is empty
	rest  []status.RunID // the runs that were not returned yet
}

// take returns the next page of the list, and removes the runs of the page from the list. The
// parameter `limit` is the largest number of runs in the page. The parameter `after` is the last
// run of the page that the caller got before. If this is not the last run that was taken from the
// list, take returns nil.
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

// keep stores the runs of a list that come after the first page of the list. The parameter
// `page` is this first page.
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

// runs finds and reads runs.
type runs struct {
	*access
	orphans   walk // a list that includes runs without an owner
	abandoned walk // a list that has only runs of dead members
}

// orphaned returns open runs of dead members. If `unowned` is true, it also returns open runs
// without an owner. For some runs there is a further condition: they are parked or
// compensation_failed, and have no next_check. Such a run is returned only if a message waits for
// it and fewer than store.MaxDeaths engines died with the run in hand. If a caller reads page after
// page, orphaned makes one query for many pages. A run that becomes an orphan after this query may
// be missing in the pages until the next query.
func (s *runs) orphaned(ctx context.Context, after status.RunID, limit int, unowned bool) ([]status.RunID, error) {
	w := &s.abandoned
	if unowned {
		w = &s.orphans
	}
	return s.walked(ctx, w, after, limit, unowned)
}

// walked returns the next page of orphans. It first takes runs from the list in `w`. If these are
// fewer than the parameter `limit`, it makes a new query for more runs.
func (s *runs) walked(ctx context.Context, w *walk, after status.RunID, limit int, unowned bool) ([]status.RunID, error) {
	var out []status.RunID
	for len(out) < limit {
		page := w.take(after, limit-len(out))
		if len(page) == 0 {
			break
		}
		// After the query that made the list, other engines may have taken over runs of this page.
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
		w.continueAfter(after, last)
	}
	return out, nil
}

// inboxAddressed lists open runs of dead members for which messages wait. It leaves out a run at
// rest if store.MaxDeaths engines died with the run in hand. It starts with the table of messages,
// because few messages wait.
const inboxAddressed = `
SELECT i.run_id FROM engine.inbox i
CROSS JOIN LATERAL (SELECT owner FROM engine.run WHERE run_id = i.run_id AND state < 10
  AND NOT (state IN (6, 7) AND next_check = 'infinity' AND EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = i.run_id AND x.deaths >= 3)) OFFSET 0) r
JOIN engine.member m ON m.engine = r.owner AND m.dead
GROUP BY i.run_id ORDER BY pg_catalog.min(i.id) LIMIT $1`

// continueAfter changes the field `after` from the run `from` to the run `to`. It does nothing if
// the field has another value. The run `from` was the last one that was taken from the list, but it
// is not an orphan any more. So the last run in the caller's page is `to`, and the caller's next
// call asks for the runs after `to`.
func (w *walk) continueAfter(from, to status.RunID) {
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
