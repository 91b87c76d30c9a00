-- +goose Up

-- The context of each unique key: which run took it last, and how long that run holds it. Whether
-- the run holds the key follows from the state of the run, which is in the table run. If retention
-- removes a run that still holds its key, the columns ended, ended_at and run keep what the row of
-- the run said. Times are microseconds since 1970.
ALTER TABLE context ADD COLUMN scope INTEGER NOT NULL DEFAULT 0 CHECK (scope BETWEEN 0 AND 2); -- 0 = goal, 1 = active, 2 = ever
ALTER TABLE context ADD COLUMN retain INTEGER CHECK (retain > 0); -- microseconds after the success; NULL = until a reset
ALTER TABLE context ADD COLUMN reset_at INTEGER; -- the goal of this run was reset then
ALTER TABLE context ADD COLUMN ended INTEGER CHECK (ended BETWEEN 10 AND 13); -- state of the removed run
ALTER TABLE context ADD COLUMN ended_at INTEGER;
ALTER TABLE context ADD COLUMN run TEXT; -- public name of the removed run

-- Contexts of removed runs that become free at some time.
CREATE INDEX context_ended_at ON context (ended_at) WHERE ended IS NOT NULL AND retain IS NOT NULL;

-- Who has reset which goal, and why. Rows are only added.
CREATE TABLE goal_reset (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow TEXT NOT NULL,
  key      TEXT NOT NULL,
  run_id   INTEGER NOT NULL, -- the run that had reached the goal
  run      TEXT NOT NULL,
  at       INTEGER NOT NULL,
  who      TEXT NOT NULL,
  reason   TEXT NOT NULL
) STRICT;
CREATE INDEX goal_reset_key ON goal_reset (workflow, key, id);
CREATE INDEX goal_reset_run ON goal_reset (run_id, id);

-- For people: the contexts with their states. Earlier runs of a key are those in the view runs with
-- the same workflow and key.
CREATE VIEW goals AS
WITH c AS (
  SELECT c.workflow, c.key, c.run_id, coalesce(n.name, c.run) AS run, r.run_id IS NULL AS run_removed, c.scope, c.retain, c.reset_at,
         coalesce(r.state, c.ended) AS state, coalesce(r.finished_at, c.ended_at) AS ended_at
  FROM context c LEFT JOIN run r ON r.run_id = c.run_id LEFT JOIN run_name n ON n.run_id = c.run_id
)
SELECT workflow, key, run_id, run, run_removed, CASE scope WHEN 0 THEN 'goal' WHEN 1 THEN 'active' ELSE 'ever' END AS scope,
       CASE WHEN c.state IN (6, 7) THEN 'needs_person' WHEN c.state < 10 THEN 'open'
            WHEN reset_at IS NOT NULL OR c.state IS NULL AND scope <> 2 OR scope = 1 THEN 'free'
            WHEN scope = 2 AND c.state IS NOT 10 THEN 'used'
            WHEN c.state = 10 AND (scope = 2 OR retain IS NULL OR ended_at + retain > (julianday('now') - 2440587.5) * 86400000000) THEN 'reached'
            ELSE 'free' END AS state,
       CASE WHEN c.state = 10 THEN strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000000.0, 'unixepoch') END AS reached_at,
       CASE WHEN c.state = 10 AND scope = 0 AND reset_at IS NULL THEN strftime('%Y-%m-%dT%H:%M:%fZ', (ended_at + retain) / 1000000.0, 'unixepoch') END AS free_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', reset_at / 1000000.0, 'unixepoch') AS reset_at, s.name AS run_state
FROM c LEFT JOIN run_state s ON s.state = c.state;
