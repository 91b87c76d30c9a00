-- +goose Up

-- The run that waits until the run of the context has ended (unique with on_conflict = "replace"), and how
-- long it will hold the key. If the waiting run has ended, it does not count any more.
ALTER TABLE engine.context
  ADD COLUMN next_run    int8,
  ADD COLUMN next_scope  int2 CHECK (next_scope BETWEEN 0 AND 2),
  ADD COLUMN next_retain int8 CHECK (next_retain > 0);
CREATE INDEX context_next ON engine.context (next_run) WHERE next_run IS NOT NULL;

CREATE OR REPLACE VIEW engine.goals AS
SELECT c.workflow, c.key, c.run_id, coalesce(n.name, c.run, engine.run_public(c.run_id)) AS run, r.run_id IS NULL AS run_removed,
       CASE c.scope WHEN 0 THEN 'goal' WHEN 1 THEN 'active' ELSE 'ever' END AS scope,
       CASE WHEN s.state IN (6, 7) THEN 'needs_person' WHEN s.state < 10 THEN 'open'
            WHEN c.scope = 2 AND s.state IS DISTINCT FROM 10 AND c.reset_at IS NULL THEN 'used'
            WHEN s.state = 10 AND c.reset_at IS NULL AND c.scope <> 1
              AND (c.scope = 2 OR c.retain IS NULL OR s.ended_at + c.retain * interval '1 microsecond' > clock_timestamp()) THEN 'reached'
            WHEN w.run_id IS NOT NULL THEN 'open' ELSE 'free' END AS state,
       CASE WHEN s.state = 10 THEN s.ended_at END AS reached_at,
       CASE WHEN s.state = 10 AND c.scope = 0 AND c.reset_at IS NULL THEN s.ended_at + c.retain * interval '1 microsecond' END AS free_at,
       c.reset_at, engine.run_state(s.state) AS run_state, coalesce(wn.name, engine.run_public(w.run_id)) AS next_run
FROM engine.context c
LEFT JOIN engine.run r ON r.run_id = c.run_id
LEFT JOIN engine.run_name n ON n.run_id = c.run_id
LEFT JOIN engine.run w ON w.run_id = c.next_run AND w.state < 10
LEFT JOIN engine.run_name wn ON wn.run_id = w.run_id
CROSS JOIN LATERAL (SELECT coalesce(r.state, c.ended) AS state, coalesce(r.finished_at, c.ended_at) AS ended_at) s;
