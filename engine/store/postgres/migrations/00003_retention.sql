-- +goose Up

-- The journal in partitions by run id, which rises with time: what belongs to
-- runs that ended long ago goes with its partition. What is there becomes the
-- first one as it stands: not a row is read or written. There is no default
-- partition: the last one, the tail, has no upper bound and is cut while it is
-- empty.
ALTER TABLE engine.journal RENAME TO journal_first;
ALTER INDEX engine.journal_pkey RENAME TO journal_first_pkey;
CREATE TABLE engine.journal (
  LIKE engine.journal_first INCLUDING CONSTRAINTS INCLUDING STORAGE,
  PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);
ALTER TABLE engine.journal ATTACH PARTITION engine.journal_first FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- +goose StatementBegin
-- Who could read or write the journal still can.
DO $$
DECLARE g record;
BEGIN
  FOR g IN
    SELECT a.privilege_type, a.is_grantable, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'engine.journal_first'::regclass AND a.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT %s ON engine.journal TO %s%s', g.privilege_type, g.who, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END $$;
-- +goose StatementEnd

-- The view has to look at the new table; its text is that of 00001.
CREATE OR REPLACE VIEW engine.steps AS
SELECT r.run_id, coalesce(n.name, r.run_id::text) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS run_state,
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

-- The partitions with their bounds, lo inclusive, hi exclusive. The first one
-- begins at 0, the tail ends at the largest number.
CREATE VIEW engine.journal_part AS
SELECT c.relname::text AS name, c.oid::regclass AS part,
       coalesce(substring(b.bound FROM 'FROM \(''?([0-9]+)''?\)')::int8, 0) AS lo,
       coalesce(substring(b.bound FROM 'TO \(''?([0-9]+)''?\)')::int8, 9223372036854775807) AS hi,
       pg_table_size(c.oid) AS bytes
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) b
WHERE i.inhparent = 'engine.journal'::regclass;

-- What follows changes partitions. Callers hold journal_alone until their
-- transaction ends. What takes long does not touch the lock that commits need;
-- what takes that lock waits 100 ms for it at most, and then fails with 55P03,
-- to be tried again.

-- +goose StatementBegin
-- Whether the caller is the only one to change partitions, until its
-- transaction ends.
CREATE FUNCTION engine.journal_alone() RETURNS boolean LANGUAGE sql AS
$$ SELECT pg_try_advisory_xact_lock(7237102917306) $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Keeps autovacuum away from the partitions that begin below a bound; one at
-- work gives way. Commits go on.
CREATE FUNCTION engine.journal_quiet(below int8) RETURNS void LANGUAGE plpgsql SET lock_timeout = '3s' AS $$
DECLARE p record;
BEGIN
  FOR p IN SELECT part FROM engine.journal_part WHERE lo < below ORDER BY lo LOOP
    EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', p.part);
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- First half of cutting a tail that is not small: nothing from the bound on may
-- enter it any more. journal_trust proves that nothing has, reading it while
-- commits go on; then journal_cut need not read it under its lock.
CREATE FUNCTION engine.journal_limit(at int8) RETURNS void LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ADD CONSTRAINT journal_bound CHECK (run_id < %s) NOT VALID',
    (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1), at);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION engine.journal_trust() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT journal_bound', (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1));
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Takes back what journal_limit did.
CREATE FUNCTION engine.journal_free() RETURNS void LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS journal_bound', (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1));
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The bound that journal_limit has set and that still stands; 0 = none.
CREATE FUNCTION engine.journal_limited() RETURNS int8 LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT substring(pg_get_constraintdef(k.oid) FROM '''?([0-9]+)''?')::int8 FROM pg_constraint k
    WHERE k.conname = 'journal_bound' AND k.conrelid = (SELECT part FROM engine.journal_part ORDER BY hi DESC LIMIT 1)), 0)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Cuts the tail: it ends at the bound, and a new, empty one begins there.
CREATE FUNCTION engine.journal_cut(at int8) RETURNS void LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE tail record;
BEGIN
  LOCK TABLE ONLY engine.journal IN ACCESS EXCLUSIVE MODE;
  SELECT * INTO STRICT tail FROM engine.journal_part ORDER BY hi DESC LIMIT 1;
  EXECUTE format('ALTER TABLE engine.journal DETACH PARTITION %s', tail.part);
  EXECUTE format('ALTER TABLE engine.journal ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
    tail.part, CASE tail.lo WHEN 0 THEN 'MINVALUE' ELSE tail.lo::text END, at);
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS journal_bound', tail.part);
  EXECUTE format('CREATE TABLE engine.%I PARTITION OF engine.journal FOR VALUES FROM (%s) TO (MAXVALUE) WITH (autovacuum_vacuum_insert_scale_factor = 0.4)',
    'journal_' || at, at);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- First half of dropping the partitions below a bound: copies what belongs to
-- runs that are still there, few as they are, into the table that will stand in
-- their place. Commits go on.
CREATE FUNCTION engine.journal_gather(below int8) RETURNS int8 LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE copied int8;
BEGIN
  EXECUTE format('CREATE TABLE engine.%I (LIKE engine.journal INCLUDING ALL, CONSTRAINT journal_bound CHECK (run_id < %s)) WITH (autovacuum_vacuum_insert_scale_factor = 0.4)',
    'journal_rest_' || below, below);
  EXECUTE format('INSERT INTO engine.%I SELECT j.* FROM engine.run r JOIN engine.journal j USING (run_id) WHERE r.run_id < %s AND j.run_id < %s',
    'journal_rest_' || below, below, below);
  GET DIAGNOSTICS copied = ROW_COUNT;
  RETURN copied;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Second half: copies what was appended meanwhile, puts the new table in the
-- place of the partitions below the bound and drops them. Returns how many.
CREATE FUNCTION engine.journal_drop(below int8) RETURNS int8 LANGUAGE plpgsql SET lock_timeout = '100ms'
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  rest text := format('engine.%I', 'journal_rest_' || below);
  p record;
  old regclass[];
  o regclass;
BEGIN
  LOCK TABLE ONLY engine.journal IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('INSERT INTO %s SELECT j.* FROM engine.run r
    CROSS JOIN LATERAL (SELECT coalesce(max(seq), -1) AS seq FROM %s WHERE run_id = r.run_id) last
    JOIN engine.journal j ON j.run_id = r.run_id AND j.seq > last.seq
    WHERE r.run_id < %s AND j.run_id < %s', rest, rest, below, below);
  FOR p IN SELECT part FROM engine.journal_part WHERE hi <= below ORDER BY lo LOOP
    EXECUTE format('ALTER TABLE engine.journal DETACH PARTITION %s', p.part);
    old := old || p.part;
  END LOOP;
  EXECUTE format('ALTER TABLE engine.journal ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%s)', rest, below);
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT journal_bound', rest);
  FOREACH o IN ARRAY old LOOP
    EXECUTE format('DROP TABLE %s', o);
  END LOOP;
  RETURN cardinality(old);
END $$;
-- +goose StatementEnd

-- Changes of state are refused after the update and not before it: a trigger
-- that comes first has each row locked once more, and logged.
DROP TRIGGER run_transition ON engine.run;
CREATE TRIGGER run_transition AFTER UPDATE OF state ON engine.run FOR EACH ROW
  WHEN (OLD.state <> NEW.state AND (OLD.state >= 10 AND NOT (OLD.state = 10 AND NEW.state = 5) OR NEW.state = 1))
  EXECUTE FUNCTION engine.refuse_run_change();
