-- +goose Up

-- The definition that a run has now, if a person has moved the run to another definition (engine
-- migrate). The row of the run keeps its first workflow, because the journal begins with it. Lists of
-- runs and engine doctor must not read journals, so this table tells them the present workflow. The row
-- is written in the commit that moves the run. A run that was moved before this migration has no row:
-- lists show its first definition until the run is moved again.
CREATE TABLE engine.run_moved (
  run_id      int8 PRIMARY KEY,
  workflow_id int4 NOT NULL REFERENCES engine.workflow -- the workflow that the run has now
);

CREATE OR REPLACE VIEW engine.runs AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS status,
       nullif(r.owner, 0) AS locked_by, coalesce(NOT m.dead AND m.lease_until > clock_timestamp(), false) AS owner_alive,
       nullif(r.next_check, 'infinity') AS next_check, r.created_at, r.finished_at,
       coalesce((SELECT x.digest FROM engine.run_moved d JOIN engine.workflow x USING (workflow_id) WHERE d.run_id = r.run_id), w.digest) AS digest, engine.run_state(r.state) AS state,
       engine.run_trigger(n.trigger) AS trigger
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN engine.member m ON m.engine = r.owner;
