-- +goose Up

-- The run that waits until the run of the context has ended (unique with on_conflict = "replace"), and how
-- long it will hold the key. If the waiting run has ended, it does not count any more.
ALTER TABLE context ADD COLUMN next_run INTEGER;
ALTER TABLE context ADD COLUMN next_scope INTEGER CHECK (next_scope BETWEEN 0 AND 2);
ALTER TABLE context ADD COLUMN next_retain INTEGER CHECK (next_retain > 0);
CREATE INDEX context_next ON context (next_run) WHERE next_run IS NOT NULL;

DROP VIEW goals;
CREATE VIEW goals AS
WITH c AS (
  SELECT c.workflow, c.key, c.run_id, coalesce(n.name, c.run) AS run, r.run_id IS NULL AS run_removed, c.scope, c.retain, c.reset_at,
         coalesce(r.state, c.ended) AS state, coalesce(r.finished_at, c.ended_at) AS ended_at, x.run_id AS next_run_id, xn.name AS next_run
  FROM context c LEFT JOIN run r ON r.run_id = c.run_id LEFT JOIN run_name n ON n.run_id = c.run_id
  LEFT JOIN run x ON x.run_id = c.next_run AND x.state < 10 LEFT JOIN run_name xn ON xn.run_id = x.run_id
)
SELECT workflow, key, run_id, run, run_removed, CASE scope WHEN 0 THEN 'goal' WHEN 1 THEN 'active' ELSE 'ever' END AS scope,
       CASE WHEN c.state IN (6, 7) THEN 'needs_person' WHEN c.state < 10 THEN 'open'
            WHEN scope = 2 AND c.state IS NOT 10 AND reset_at IS NULL THEN 'used'
            WHEN c.state = 10 AND reset_at IS NULL AND scope <> 1 AND (scope = 2 OR retain IS NULL OR ended_at + retain > (julianday('now') - 2440587.5) * 86400000000) THEN 'reached'
            WHEN next_run_id IS NOT NULL THEN 'open' ELSE 'free' END AS state,
       CASE WHEN c.state = 10 THEN strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000000.0, 'unixepoch') END AS reached_at,
       CASE WHEN c.state = 10 AND scope = 0 AND reset_at IS NULL THEN strftime('%Y-%m-%dT%H:%M:%fZ', (ended_at + retain) / 1000000.0, 'unixepoch') END AS free_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', reset_at / 1000000.0, 'unixepoch') AS reset_at, s.name AS run_state, next_run
FROM c LEFT JOIN run_state s ON s.state = c.state;
