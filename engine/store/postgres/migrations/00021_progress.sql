-- +goose Up

-- Two views for programs that follow runs with SQL. They read rows that commits write anyway, and no
-- encrypted data.

-- engine.run_number returns the internal id of a run with the given public id; NULL = there is none.
-- A search for the internal id uses the indexes of the tables, and a search for the public id of a
-- run without a name cannot.
CREATE FUNCTION engine.run_number(run text) RETURNS int8 LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(
  (SELECT n.run_id FROM engine.run_name n WHERE n.name = run_number.run),
  CASE WHEN run ~ '^r-[1-9a-z][0-9a-z]{0,11}$' THEN (
    SELECT sum((strpos('0123456789abcdefghijklmnopqrstuvwxyz', substr(run, i, 1)) - 1) * 36::numeric ^ (length(run) - i))::int8
    FROM generate_series(3, length(run)) i) END);

-- engine.process_state returns the state of a run in the words of the pattern Scheduler Agent
-- Supervisor. A run that waits for a person is an error, until the person lets it continue.
CREATE FUNCTION engine.process_state(s int2) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN s = 1 THEN 'Pending' WHEN s BETWEEN 2 AND 5 THEN 'Processing' WHEN s = 10 THEN 'Processed' ELSE 'Error' END;

CREATE VIEW engine.processes AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key AS business_key,
       CASE WHEN r.state BETWEEN 2 AND 9 THEN nullif(r.owner, 0) END AS locked_by, s.complete_by,
       engine.process_state(r.state) AS process_state, s.failure_count
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
CROSS JOIN LATERAL (
  SELECT min(timestamptz '2000-01-01 00:00:00+00' + nullif(engine.be_int(l.c, 8, 8), 0) * interval '1 microsecond') AS complete_by,
         coalesce(sum(get_byte(l.c, 5)), 0)::int4 AS failure_count
  FROM (
    SELECT DISTINCT ON (engine.be_int(c, 0, 4)) c FROM (
      SELECT j.seq, e, substr(j.steps, e * 16 + 1, 16) AS c
      FROM engine.journal j, generate_series(0, length(j.steps) / 16 - 1) e
      WHERE j.run_id = r.run_id AND j.steps IS NOT NULL OFFSET 0
    ) entry ORDER BY engine.be_int(c, 0, 4), seq DESC, e DESC
  ) l
) s;

-- Each row of the journal is at least one event. A row that changes the run is an event with n = 0,
-- and each step that the row changes is an event with n = 1, 2 and so on.
CREATE VIEW engine.run_events AS
SELECT j.run_id, coalesce(n.name, engine.run_public(j.run_id)) AS run, w.name AS workflow, n.key, j.seq, x.n, j.at, x.kind,
       CASE WHEN x.n = 0 THEN engine.run_state(j.run_state) END AS status,
       CASE WHEN x.n = 0 THEN nullif(j.owner, 0) END AS locked_by,
       coalesce(i.name, d.name) AS step, engine.step_state(get_byte(x.c, 4)) AS state,
       engine.be_int(x.c, 6, 2)::int4 AS attempt, get_byte(x.c, 5) AS failure_count,
       timestamptz '2000-01-01 00:00:00+00' + nullif(engine.be_int(x.c, 8, 8), 0) * interval '1 microsecond' AS complete_by
FROM engine.journal j
JOIN engine.run r ON r.run_id = j.run_id
JOIN engine.workflow w ON w.workflow_id = r.workflow_id
LEFT JOIN engine.run_name n ON n.run_id = j.run_id
CROSS JOIN LATERAL (
  SELECT 0 AS n, CASE WHEN j.seq = 0 THEN 'accepted' WHEN j.owner = 0 THEN 'released' WHEN j.owner > 0 THEN 'claimed'
    WHEN j.run_state IS NOT NULL THEN 'status' ELSE 'recorded' END AS kind, NULL::bytea AS c
  WHERE j.seq = 0 OR j.owner IS NOT NULL OR j.run_state IS NOT NULL OR coalesce(length(j.steps), 0) = 0
  UNION ALL
  SELECT e + 1, 'step', substr(j.steps, e * 16 + 1, 16) FROM generate_series(0, coalesce(length(j.steps), 0) / 16 - 1) e
) x
LEFT JOIN engine.run_step i ON i.run_id = j.run_id AND i.node = engine.be_int(x.c, 0, 4)::int4
LEFT JOIN engine.workflow_step d ON d.workflow_id = r.workflow_id AND d.node = engine.be_int(x.c, 0, 4)::int4;
