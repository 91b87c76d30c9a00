-- +goose Up

-- The context of each unique key: which run took it last, and how long that run holds it. Whether
-- the run holds the key follows from the state of the run, which is in engine.run. If retention
-- removes a run that still holds its key, the columns ended, ended_at and run keep what the row of
-- the run said.
ALTER TABLE engine.context
  ADD COLUMN scope    int2 NOT NULL DEFAULT 0 CHECK (scope BETWEEN 0 AND 2), -- 0 = goal, 1 = active, 2 = ever
  ADD COLUMN retain   int8 CHECK (retain > 0), -- microseconds after the success; NULL = until a reset
  ADD COLUMN reset_at timestamptz, -- the goal of this run was reset then
  ADD COLUMN ended    int2 CHECK (ended BETWEEN 10 AND 13), -- state of the removed run
  ADD COLUMN ended_at timestamptz,
  ADD COLUMN run      text, -- public name of the removed run
  ADD CONSTRAINT context_ended CHECK ((ended IS NULL) = (ended_at IS NULL) AND (ended IS NULL) = (run IS NULL));

-- Contexts of removed runs that become free at some time.
CREATE INDEX context_ended_at ON engine.context (ended_at) WHERE ended IS NOT NULL AND retain IS NOT NULL;

-- Who has reset which goal, and why. Rows are only added.
CREATE TABLE engine.goal_reset (
  id       int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workflow text NOT NULL,
  key      text NOT NULL,
  run_id   int8 NOT NULL, -- the run that had reached the goal
  run      text NOT NULL,
  at       timestamptz NOT NULL,
  who      text NOT NULL,
  reason   text NOT NULL
);
CREATE INDEX goal_reset_key ON engine.goal_reset (workflow, key, id);
CREATE INDEX goal_reset_run ON engine.goal_reset (run_id, id);

-- For people: the contexts with their states. Earlier runs of a key are those in engine.runs with
-- the same workflow and key.
CREATE VIEW engine.goals AS
SELECT c.workflow, c.key, c.run_id, coalesce(n.name, c.run, engine.run_public(c.run_id)) AS run, r.run_id IS NULL AS run_removed,
       CASE c.scope WHEN 0 THEN 'goal' WHEN 1 THEN 'active' ELSE 'ever' END AS scope,
       CASE WHEN s.state IN (6, 7) THEN 'needs_person' WHEN s.state < 10 THEN 'open'
            WHEN c.reset_at IS NOT NULL OR s.state IS NULL AND c.scope <> 2 OR c.scope = 1 THEN 'free'
            WHEN c.scope = 2 AND s.state IS DISTINCT FROM 10 THEN 'used'
            WHEN s.state = 10 AND (c.scope = 2 OR c.retain IS NULL OR s.ended_at + c.retain * interval '1 microsecond' > clock_timestamp()) THEN 'reached'
            ELSE 'free' END AS state,
       CASE WHEN s.state = 10 THEN s.ended_at END AS reached_at,
       CASE WHEN s.state = 10 AND c.scope = 0 AND c.reset_at IS NULL THEN s.ended_at + c.retain * interval '1 microsecond' END AS free_at,
       c.reset_at, engine.run_state(s.state) AS run_state
FROM engine.context c
LEFT JOIN engine.run r ON r.run_id = c.run_id
LEFT JOIN engine.run_name n ON n.run_id = c.run_id
CROSS JOIN LATERAL (SELECT coalesce(r.state, c.ended) AS state, coalesce(r.finished_at, c.ended_at) AS ended_at) s;
