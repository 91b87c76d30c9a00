-- +goose Up

-- A run's state has one name everywhere, status, as in the output of every
-- command. The names of before, state in engine.runs and run_state in engine.steps,
-- are the last column of each view: queries that were written with them go on. The
-- rest of the text is that of 00004 and 00005.
ALTER VIEW engine.runs RENAME COLUMN state TO status;
CREATE OR REPLACE VIEW engine.runs AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS status,
       nullif(r.owner, 0) AS locked_by, coalesce(NOT m.dead AND m.lease_until > clock_timestamp(), false) AS owner_alive,
       nullif(r.next_check, 'infinity') AS next_check, r.created_at, r.finished_at, w.digest, engine.run_state(r.state) AS state
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN engine.member m ON m.engine = r.owner;

ALTER VIEW engine.steps RENAME COLUMN run_state TO run_status;
CREATE OR REPLACE VIEW engine.steps AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS run_status,
       x.node, x.name AS step, engine.step_state(coalesce(get_byte(x.c, 4), 1)) AS state, coalesce(engine.be_int(x.c, 6, 2)::int4, 0) AS attempt,
       coalesce(get_byte(x.c, 5), 0) AS failure_count, CASE WHEN get_byte(x.c, 4) = 2 THEN r.owner END AS locked_by,
       timestamptz '2000-01-01 00:00:00+00' + nullif(engine.be_int(x.c, 8, 8), 0) * interval '1 microsecond' AS complete_by, engine.run_state(r.state) AS run_state
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
CROSS JOIN LATERAL (
  SELECT d.node, d.name, s.c
  FROM (SELECT node, name FROM engine.workflow_step WHERE workflow_id = r.workflow_id
        UNION ALL SELECT node, name FROM engine.run_step WHERE run_id = r.run_id) d
  LEFT JOIN (
    SELECT DISTINCT ON (engine.be_int(c, 0, 4)) engine.be_int(c, 0, 4)::int4 AS node, c FROM (
      SELECT j.seq, e, substr(j.steps, e * 16 + 1, 16) AS c
      FROM engine.journal j, generate_series(0, length(j.steps) / 16 - 1) e
      WHERE j.run_id = r.run_id AND j.steps IS NOT NULL OFFSET 0
    ) entry ORDER BY engine.be_int(c, 0, 4), seq DESC, e DESC
  ) s USING (node)
) x;
