-- +goose Up

-- The definition that a run has now, if a person has moved the run to another definition (engine
-- migrate). The row of the run keeps its first workflow, because the journal begins with it. Lists of
-- runs and engine doctor must not read journals, so this table tells them the present workflow. The row
-- is written in the commit that moves the run. A run that was moved before this migration has no row:
-- lists show its first definition until the run is moved again.
CREATE TABLE run_moved (
  run_id      INTEGER PRIMARY KEY,
  workflow_id INTEGER NOT NULL REFERENCES workflow -- the workflow that the run has now
) STRICT;

DROP VIEW runs;
CREATE VIEW runs AS
SELECT r.run_id, n.run, w.name AS workflow, n.key, s.name AS status,
       nullif(r.owner, 0) AS locked_by,
       coalesce(NOT m.dead AND m.lease_until > (julianday('now') - 2440587.5) * 86400000000, 0) AS owner_alive,
       CASE WHEN r.next_check < 253402214400000000 THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.next_check / 1000000.0, 'unixepoch') END AS next_check,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_at / 1000000.0, 'unixepoch') AS finished_at, w.digest, s.name AS state,
       (SELECT t.name FROM run_trigger t WHERE t."trigger" = coalesce(rn."trigger", 0)) AS "trigger"
FROM run r LEFT JOIN run_moved d ON d.run_id = r.run_id
JOIN workflow w ON w.workflow_id = coalesce(d.workflow_id, r.workflow_id) JOIN run_state s ON s.state = r.state
JOIN run_public n ON n.run_id = r.run_id LEFT JOIN run_name rn ON rn.run_id = r.run_id LEFT JOIN member m ON m.engine = r.owner;
