package firing

import (
	"context"
	"database/sql"
	"time"
)

// firingRetain examines the next ended firings, and removes the old ones that nothing needs any more.
// A run exists as long as its name, so a firing stays while one of its runs exists: without the
// firing, its rows could start runs again. The last interval of a schedule stays, because the next
// interval begins at its end. Names of runs are ASCII without ~, so ~ comes after every name with the
// same beginning.
const firingRetain = `
WITH old AS MATERIALIZED (
  SELECT f.firing_id, f.runs FROM engine.firing f LEFT JOIN engine.workflow w USING (workflow_id)
  WHERE f.firing_id > $1 AND f.state <> 'open'
    AND f.ended_at < coalesce(pg_catalog.clock_timestamp() - w.retention * interval '1 microsecond', $2)
    AND (f.to_at IS NULL OR EXISTS (SELECT FROM engine.firing l WHERE l.workflow = f.workflow AND l.schedule = f.schedule AND l.to_at > f.to_at))
  ORDER BY f.firing_id LIMIT $3 FOR UPDATE OF f SKIP LOCKED
), gone AS (
  DELETE FROM engine.firing f USING old o
  WHERE f.firing_id = o.firing_id AND NOT EXISTS (SELECT FROM engine.run_name n WHERE n.name >= o.runs AND n.name < o.runs || '~')
  RETURNING 1
)
SELECT (SELECT pg_catalog.count(*) FROM old), (SELECT coalesce(pg_catalog.max(firing_id), 0) FROM old), (SELECT pg_catalog.count(*) FROM gone)`

// Retain removes firings that ended before the given time, with their quarantined rows. If a workflow
// has its own retention, that counts in place of the time. One statement examines no more firings than
// the parameter page says. Retain returns how many firings it has removed.
func Retain(ctx context.Context, db *sql.DB, before time.Time, page int) (removed int, err error) {
	for last := int64(0); ; {
		var found, gone int
		if err := db.QueryRowContext(ctx, firingRetain, last, before, page).Scan(&found, &last, &gone); err != nil {
			return removed, err
		}
		removed += gone
		if found < page {
			return removed, nil
		}
	}
}
