-- +goose Up

-- Leaner rows. Eight columns, ordered so that they need no padding: those that
-- are NULL, as nearly always two of them are, then take no room at all. A run that is submitted without
-- a name is known by one that follows from its id and needs no row in run_name,
-- unless it has a key. This migration copies the journal.
LOCK TABLE engine.journal IN ACCESS EXCLUSIVE MODE;

-- The truth. Insert only; (run_id, seq) is the optimistic lock.
CREATE TABLE engine.journal_lean (
  run_id int8,
  at     timestamptz NOT NULL,
  writer int8 NOT NULL, -- token of the commit
  seq    int4 CONSTRAINT journal_seq_check CHECK (seq >= 0),
  owner     int4, -- of the run from this row on; NULL = as before
  run_state int2, -- likewise
  -- 16 bytes per change: node int4, state int1, failures int1, attempt int2,
  -- complete_by int8 (us since 2000). One change or two are looked at without a
  -- call: nearly all rows have no more.
  steps  bytea CONSTRAINT journal_steps_check CHECK (CASE length(steps)
    WHEN 16 THEN get_byte(steps, 4) BETWEEN 1 AND 13 AND (get_byte(steps, 4) <> 2 OR substr(steps, 9, 8) <> '\x0000000000000000')
    WHEN 32 THEN get_byte(steps, 4) BETWEEN 1 AND 13 AND (get_byte(steps, 4) <> 2 OR substr(steps, 9, 8) <> '\x0000000000000000')
      AND get_byte(steps, 20) BETWEEN 1 AND 13 AND (get_byte(steps, 20) <> 2 OR substr(steps, 25, 8) <> '\x0000000000000000')
    ELSE engine.steps_legal(steps) END),
  data   bytea NOT NULL CONSTRAINT journal_data_check CHECK (length(data) > 0),
  PRIMARY KEY (run_id, seq),
  CONSTRAINT journal_check CHECK (seq > 0 OR owner IS NOT NULL AND run_state IS NOT NULL)
) PARTITION BY RANGE (run_id);
-- The row that expands a wide for_each is read in slices.
ALTER TABLE engine.journal_lean ALTER COLUMN steps SET STORAGE EXTERNAL;
CREATE TABLE engine.journal_lean_first PARTITION OF engine.journal_lean FOR VALUES FROM (MINVALUE) TO (MAXVALUE)
  WITH (autovacuum_vacuum_insert_scale_factor = 0.4);
INSERT INTO engine.journal_lean (run_id, at, writer, seq, owner, run_state, steps, data)
SELECT run_id, at, writer, seq, owner, run_state, steps, data FROM engine.journal ORDER BY run_id, seq;

-- +goose StatementBegin
-- Who could read or write the journal still can.
DO $$
DECLARE g record;
BEGIN
  FOR g IN
    SELECT a.privilege_type, a.is_grantable, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'engine.journal'::regclass AND a.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT %s ON engine.journal_lean TO %s%s', g.privilege_type, g.who, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The name that follows from a run's id: 'r-' and the id in base 36.
CREATE FUNCTION engine.run_public(id int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 'r-' || ltrim(string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (id / p % 36)::int4 + 1, 1), '' ORDER BY p DESC), '0')
  FROM unnest('{1,36,1296,46656,1679616,60466176,2176782336,78364164096,2821109907456,101559956668416,3656158440062976,131621703842267136,4738381338321616896}'::int8[]) p
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Views are made anew, and who could read them still can.
DO $$
BEGIN
  CREATE TEMPORARY TABLE view_grant ON COMMIT DROP AS
  SELECT c.relname AS name, a.privilege_type, a.is_grantable, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
  FROM pg_class c, aclexplode(c.relacl) a
  WHERE c.oid IN ('engine.runs'::regclass, 'engine.steps'::regclass, 'engine.journal_part'::regclass) AND a.grantee <> c.relowner;
END $$;
-- +goose StatementEnd
DROP VIEW engine.runs, engine.steps, engine.journal_part;
DROP TABLE engine.journal;
ALTER TABLE engine.journal_lean RENAME TO journal;
ALTER INDEX engine.journal_lean_pkey RENAME TO journal_pkey;
ALTER TABLE engine.journal_lean_first RENAME TO journal_first;
ALTER INDEX engine.journal_lean_first_pkey RENAME TO journal_first_pkey;

-- The text of the views is that of 00001 and 00003, but for the name.
CREATE VIEW engine.runs AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS state,
       nullif(r.owner, 0) AS locked_by, coalesce(NOT m.dead AND m.lease_until > clock_timestamp(), false) AS owner_alive,
       nullif(r.next_check, 'infinity') AS next_check, r.created_at, r.finished_at, w.digest
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN engine.member m ON m.engine = r.owner;

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

CREATE VIEW engine.journal_part AS
SELECT c.relname::text AS name, c.oid::regclass AS part,
       coalesce(substring(b.bound FROM 'FROM \(''?([0-9]+)''?\)')::int8, 0) AS lo,
       coalesce(substring(b.bound FROM 'TO \(''?([0-9]+)''?\)')::int8, 9223372036854775807) AS hi,
       pg_table_size(c.oid) AS bytes
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) b
WHERE i.inhparent = 'engine.journal'::regclass;

-- +goose StatementBegin
DO $$
DECLARE g record;
BEGIN
  FOR g IN SELECT * FROM view_grant LOOP
    EXECUTE format('GRANT %s ON engine.%I TO %s%s', g.privilege_type, g.name, g.who, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END $$;
-- +goose StatementEnd
