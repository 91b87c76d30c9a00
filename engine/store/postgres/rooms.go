package postgres

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Statements about the table `place`: the limits that runs share. An admitted run holds its place
// while the run is open. So the statements count the open admitted runs. There is no counter.
const (
	// placeLock locks a limit until the transaction ends. So the next statement, which counts the
	// admitted runs, sees all runs that other transactions have admitted.
	placeLock = `SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat($1::text, pg_catalog.chr(10), $2::text), 7237102917307))`
	placeOf   = `SELECT workflow, key, slots FROM engine.place WHERE run_id = $1`
	placeHeld = `
SELECT pg_catalog.count(*) FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
WHERE p.workflow = $1 AND p.key = $2 AND p.admitted AND r.state < 10`
	// placeAsk returns whether the run $3 is admitted already, how many open runs are admitted, and
	// whether an open run waits in line.
	placeAsk = `
SELECT EXISTS (SELECT FROM engine.place WHERE run_id = $3::int8 AND admitted), (` + placeHeld + `), EXISTS (
  SELECT FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
  WHERE p.workflow = $1 AND p.key = $2 AND NOT p.admitted AND r.state < 10)`
	// placeSweep works on one limit. It removes the row of each ended run that was admitted, or
	// that is one of the first 100 runs in line. Retention removes the remaining rows of ended
	// runs.
	placeSweep = `
DELETE FROM engine.place WHERE run_id = ANY (ARRAY(
  SELECT p.run_id FROM (
    SELECT run_id FROM engine.place WHERE workflow = $1 AND key = $2 AND admitted
    UNION ALL (SELECT run_id FROM engine.place WHERE workflow = $1 AND key = $2 AND NOT admitted ORDER BY rank, run_id LIMIT 100)) p
  WHERE NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = p.run_id AND r.state < 10 OFFSET 0)))`
	placeAdd   = `INSERT INTO engine.place (run_id, workflow, key, slots, rank, admitted) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`
	placeAdmit = `UPDATE engine.place SET admitted = true WHERE run_id = $1`

	// placeNext returns those runs of the engine $1 that are the next in line and for which a place
	// is free. It finds each line with one search in the index, so it does not read all runs that
	// wait. It skips runs whose owner is not alive, and runs whose unique key is not free, so that
	// they do not stop the line. Runs in one line may have different limits. A run for which no
	// place is free stops the runs behind it. If no place is free for the first run of a line (the
	// subquery `f`), placeNext reads no other run of the line. It reads at most 1000 runs of each
	// line.
	placeNext = `
WITH RECURSIVE line AS (
  (SELECT workflow, key FROM engine.place WHERE NOT admitted ORDER BY workflow, key, rank, run_id LIMIT 1)
  UNION ALL SELECT n.workflow, n.key FROM line l CROSS JOIN LATERAL (
    SELECT p.workflow, p.key FROM engine.place p WHERE NOT p.admitted AND (p.workflow, p.key) > (l.workflow, l.key)
    ORDER BY p.workflow, p.key, p.rank, p.run_id LIMIT 1) n
)
SELECT q.run_id FROM (
  SELECT n.run_id, n.owner, n.n, l.workflow, l.key, pg_catalog.bool_and(h.taken + n.n <= n.slots) OVER (PARTITION BY l.workflow, l.key ORDER BY n.n) AS fits
  FROM line l
  CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS taken FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
    WHERE p.workflow = l.workflow AND p.key = l.key AND p.admitted AND r.state < 10) h
  CROSS JOIN LATERAL (
    SELECT p.slots FROM engine.place p CROSS JOIN LATERAL (SELECT owner, state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
    WHERE p.workflow = l.workflow AND p.key = l.key AND NOT p.admitted AND r.state < 10
      AND EXISTS (SELECT FROM engine.member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp())
      AND NOT ` + keyWanted + `
    ORDER BY p.rank, p.run_id LIMIT 1) f
  CROSS JOIN LATERAL (
    SELECT p.run_id, p.slots, r.owner, pg_catalog.row_number() OVER (ORDER BY p.rank, p.run_id) AS n
    FROM engine.place p CROSS JOIN LATERAL (SELECT owner, state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
    WHERE h.taken < f.slots AND p.workflow = l.workflow AND p.key = l.key AND NOT p.admitted AND r.state < 10
      AND EXISTS (SELECT FROM engine.member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp())
      AND NOT ` + keyWanted + `
    ORDER BY p.rank, p.run_id LIMIT 1000) n
) q WHERE q.owner = $1::int4 AND q.fits ORDER BY q.workflow, q.key, q.n LIMIT $2::int4`

	placeHolders = `
SELECT p.run_id, coalesce(n.name, '')
FROM (SELECT run_id FROM engine.place WHERE workflow = $1 AND key = $2 AND admitted OFFSET 0) p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
LEFT JOIN engine.run_name n ON n.run_id = p.run_id
WHERE r.state < 10 ORDER BY p.run_id LIMIT $3::int4`
	placeCounts = `
SELECT (` + placeHeld + `), (
  SELECT pg_catalog.count(*) FROM engine.place p CROSS JOIN LATERAL (SELECT state FROM engine.run WHERE run_id = p.run_id OFFSET 0) r
  WHERE p.workflow = $1 AND p.key = $2 AND NOT p.admitted AND r.state < 10)`
)

const (
	// keyWanted says whether a run waits for a unique key that is not free. The run is `p`, a row
	// of the table `place`.
	keyWanted = `EXISTS (SELECT FROM engine.context c LEFT JOIN engine.run r ON r.run_id = c.run_id WHERE c.next_run = p.run_id AND ` + contextHeld + `)`
	// keyNext returns the runs of the engine $1 that wait for a unique key. The run that took the
	// key last (the former run) must have ended. keyNext also returns the id of the former run, and
	// whether the former run still holds the key. A waiting run may also wait for a place. keyNext
	// leaves out such a run if the former run does not hold the key.
	keyNext = `
SELECT w.run_id, c.run_id, ` + contextHeld + `
FROM engine.context c CROSS JOIN LATERAL (SELECT run_id, owner, state FROM engine.run WHERE run_id = c.next_run OFFSET 0) w
LEFT JOIN LATERAL (SELECT state, finished_at FROM engine.run WHERE run_id = c.run_id OFFSET 0) r ON true
WHERE c.next_run IS NOT NULL AND w.state < 10 AND w.owner = $1::int4 AND coalesce(r.state, 10) >= 10
  AND (` + contextHeld + ` OR NOT EXISTS (SELECT FROM engine.place p WHERE p.run_id = c.next_run AND NOT p.admitted OFFSET 0))
ORDER BY c.next_run LIMIT $2::int4`
)

// Places returns which open runs hold a place in a limit. It also counts the open runs that wait in
// line.
func (s *views) Places(ctx context.Context, workflow, key string, limit int) (naming.Places, error) {
	var p naming.Places
	counts, err := s.read(ctx, placeCounts, workflow, key)
	if err != nil {
		return p, wrap("count runs of a limit", err)
	}
	defer counts.Close()
	for counts.Next() {
		if err := counts.Scan(&p.Taken, &p.Waiting); err != nil {
			return p, wrap("count runs of a limit", err)
		}
	}
	if err := counts.Err(); err != nil {
		return p, wrap("count runs of a limit", err)
	}
	rows, err := s.read(ctx, placeHolders, workflow, key, limit)
	if err != nil {
		return p, wrap("list runs of a limit", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			run  status.RunID
			name string
		)
		if err := rows.Scan(&run, &name); err != nil {
			return p, wrap("list runs of a limit", err)
		}
		if name == "" {
			name = naming.RunName(run)
		}
		p.Open = append(p.Open, name)
	}
	return p, wrapIf("list runs of a limit", rows.Err())
}
