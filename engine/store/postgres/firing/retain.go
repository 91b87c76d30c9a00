package firing

import (
	"context"
	"database/sql"
	"time"

	"github.com/saga-engine/engine/engine/store/naming"
)

// firingRetain examines the next ended firings, and removes those that are old and not needed any
// more. A firing stays while one of its runs exists: without the firing, its rows could start runs
// again. The ids of runs are in the order of time (naming.FirstRunOf). So the statement looks only
// for runs with ids from 1 minute before the start of the firing to 1 minute after its end. The
// minute is needed, because the clocks of engines differ a little. The firing with the last
// interval of a schedule stays, because the next interval begins at the end of the last one.
const firingRetain = `
WITH old AS MATERIALIZED (
  SELECT f.firing_id, f.runs, GREATEST(0, extract(epoch FROM f.opened_at - interval '1 minute' - $4::timestamptz)::numeric * 1000::numeric)::int8 << 22 AS least,
    GREATEST(0, extract(epoch FROM f.ended_at + interval '1 minute' - $4::timestamptz)::numeric * 1000::numeric)::int8 << 22 AS most
  FROM engine.firing f LEFT JOIN engine.workflow w USING (workflow_id)
  WHERE f.firing_id > $1 AND f.state <> 'open'
    AND f.ended_at < coalesce(pg_catalog.clock_timestamp() - w.retention::float8 * interval '1 microsecond', $2)
    AND (f.to_at IS NULL OR EXISTS (SELECT FROM engine.firing l WHERE l.workflow = f.workflow AND l.schedule = f.schedule AND l.to_at > f.to_at))
  ORDER BY f.firing_id LIMIT $3 FOR UPDATE OF f SKIP LOCKED
), gone AS (
  DELETE FROM engine.firing f USING old o
  WHERE f.firing_id = o.firing_id
    AND NOT EXISTS (SELECT FROM engine.run_name n WHERE n.run_id BETWEEN o.least AND o.most AND pg_catalog.starts_with(n.name, o.runs))
  RETURNING 1
)
SELECT (SELECT pg_catalog.count(*) FROM old), (SELECT coalesce(pg_catalog.max(firing_id), 0) FROM old), (SELECT pg_catalog.count(*) FROM gone)`

// Retain removes firings that ended before the given time and are not needed any more
// (firingRetain), with their quarantined rows. If a workflow has its own retention, that retention
// counts, and not the given time. One statement examines at most `page` firings. Retain returns how
// many firings it has removed.
func Retain(ctx context.Context, db *sql.DB, before time.Time, page int) (removed int, err error) {
	for last := int64(0); ; {
		var found, gone int
		if err := db.QueryRowContext(ctx, firingRetain, last, before, page, naming.TimeOfRun(0)).Scan(&found, &last, &gone); err != nil {
			return removed, err
		}
		removed += gone
		if found < page {
			return removed, nil
		}
	}
}
