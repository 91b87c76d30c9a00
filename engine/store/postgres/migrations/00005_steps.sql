-- +goose Up

-- What journal.steps may hold is the rule of a type, and no longer one of the
-- table: PostgreSQL reads a table's rules anew in every statement, which took a
-- lone commit a quarter of its CPU time, and a type's once in a session. Not a row
-- is read or written: to a type without a rule the column changes as it stands, and
-- all rows have obeyed the rule before.
LOCK TABLE engine.journal IN ACCESS EXCLUSIVE MODE;
CREATE DOMAIN engine.step_changes AS bytea;

-- +goose StatementBegin
-- The view is made anew, and who could read it still can.
DO $$
BEGIN
  CREATE TEMPORARY TABLE view_grant ON COMMIT DROP AS
  SELECT a.privilege_type, a.is_grantable, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
  FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'engine.steps'::regclass AND a.grantee <> c.relowner;
END $$;
-- +goose StatementEnd
DROP VIEW engine.steps;
ALTER TABLE engine.journal DROP CONSTRAINT journal_steps_check;
ALTER TABLE engine.journal ALTER COLUMN steps TYPE engine.step_changes;
-- The row that expands a wide for_each is read in slices.
ALTER TABLE engine.journal ALTER COLUMN steps SET STORAGE EXTERNAL;

-- 16 bytes per change: node int4, state int1, failures int1, attempt int2,
-- complete_by int8 (us since 2000). One change or two are looked at without a
-- call: nearly all rows have no more.
ALTER DOMAIN engine.step_changes ADD CONSTRAINT step_changes_check CHECK (CASE length(VALUE)
  WHEN 16 THEN get_byte(VALUE, 4) BETWEEN 1 AND 13 AND (get_byte(VALUE, 4) <> 2 OR substr(VALUE, 9, 8) <> '\x0000000000000000')
  WHEN 32 THEN get_byte(VALUE, 4) BETWEEN 1 AND 13 AND (get_byte(VALUE, 4) <> 2 OR substr(VALUE, 9, 8) <> '\x0000000000000000')
    AND get_byte(VALUE, 20) BETWEEN 1 AND 13 AND (get_byte(VALUE, 20) <> 2 OR substr(VALUE, 25, 8) <> '\x0000000000000000')
  ELSE engine.steps_legal(VALUE) END) NOT VALID;

-- Its text is that of 00004.
CREATE VIEW engine.steps AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS run_state,
       x.node, x.name AS step, engine.step_state(coalesce(get_byte(x.c, 4), 1)) AS state, coalesce(engine.be_int(x.c, 6, 2)::int4, 0) AS attempt,
       coalesce(get_byte(x.c, 5), 0) AS failure_count, CASE WHEN get_byte(x.c, 4) = 2 THEN r.owner END AS locked_by,
       timestamptz '2000-01-01 00:00:00+00' + nullif(engine.be_int(x.c, 8, 8), 0) * interval '1 microsecond' AS complete_by
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

-- +goose StatementBegin
DO $$
DECLARE g record;
BEGIN
  FOR g IN SELECT * FROM view_grant LOOP
    EXECUTE format('GRANT %s ON engine.steps TO %s%s', g.privilege_type, g.who, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END $$;
-- +goose StatementEnd
