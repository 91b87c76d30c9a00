-- +goose Up

-- Who is alive. A row is one incarnation of an engine; the number is new at
-- every start of a process.
CREATE TABLE engine.member (
  engine      int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  address     text NOT NULL,
  joined_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease_until timestamptz NOT NULL,
  dead        boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- One row per writer: whoever commits holds it FOR NO KEY UPDATE; whoever
-- deletes it waits for that commit and forbids the next.
CREATE TABLE engine.fence (
  engine int4,
  writer int2,
  PRIMARY KEY (engine, writer)
) WITH (fillfactor = 10);

-- What holds for the whole database. key: id of the encryption key.
CREATE TABLE engine.setting (
  name  text PRIMARY KEY CHECK (name <> ''),
  value text NOT NULL CHECK (value <> '')
);

CREATE TABLE engine.definition (
  digest     text PRIMARY KEY,
  data       bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE engine.workflow (
  workflow_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest      text NOT NULL REFERENCES engine.definition,
  name        text NOT NULL,
  UNIQUE (digest, name)
);
CREATE INDEX workflow_name ON engine.workflow (name);
-- Names of steps, written with the definition: every step of a run shows from
-- its submission without a byte of journal.
CREATE TABLE engine.workflow_step (
  workflow_id int4 REFERENCES engine.workflow,
  node        int4,
  name        text NOT NULL,
  PRIMARY KEY (workflow_id, node)
);

-- No foreign keys on the tables below: each insert would lock the parent row.

-- A fold of the journal. Numbers of states are those of engine/machine.
CREATE TABLE engine.run (
  run_id      int8 PRIMARY KEY CHECK (run_id > 0),
  workflow_id int4 NOT NULL,
  state       int2 NOT NULL CHECK (state BETWEEN 1 AND 7 OR state BETWEEN 10 AND 13),
  owner       int4 NOT NULL CHECK (owner >= 0), -- 0 = nobody
  fence       int4 NOT NULL,                    -- seq of the record that made owner the owner
  next_check  timestamptz NOT NULL,             -- lower bound of the earliest due time
  created_at  timestamptz NOT NULL,
  finished_at timestamptz,
  CHECK ((finished_at IS NOT NULL) = (state >= 10))
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX run_active ON engine.run (owner, next_check) WHERE state < 10; -- the only secondary index of the hot path

-- +goose StatementBegin
CREATE FUNCTION engine.refuse_run_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'run %: state % cannot become %', OLD.run_id, OLD.state, NEW.state USING ERRCODE = 'check_violation';
END $$;
-- +goose StatementEnd
-- The condition is evaluated without a call: an ordinary update pays nothing.
CREATE TRIGGER run_transition BEFORE UPDATE OF state ON engine.run FOR EACH ROW
  WHEN (OLD.state <> NEW.state AND (OLD.state >= 10 AND NOT (OLD.state = 10 AND NEW.state = 5) OR NEW.state = 1))
  EXECUTE FUNCTION engine.refuse_run_change();

-- +goose StatementBegin
-- Whether the entries of journal.steps are legal: a state of the set, and no
-- running step without a complete-by.
CREATE FUNCTION engine.steps_legal(b bytea) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
  IF length(b) % 16 <> 0 THEN RETURN false; END IF;
  FOR i IN 0 .. length(b) / 16 - 1 LOOP
    IF get_byte(b, i * 16 + 4) NOT BETWEEN 1 AND 13
       OR get_byte(b, i * 16 + 4) = 2 AND substr(b, i * 16 + 9, 8) = '\x0000000000000000' THEN
      RETURN false;
    END IF;
  END LOOP;
  RETURN true;
END $$;
-- +goose StatementEnd

-- The truth. Insert only; (run_id, seq) is the optimistic lock.
CREATE TABLE engine.journal (
  run_id      int8,
  seq         int4 CHECK (seq >= 0),
  at          timestamptz NOT NULL,
  workflow_id int4, -- with run_state, owner and next_check: what the run row becomes; NULL = unchanged
  run_state   int2,
  owner       int4,
  next_check  timestamptz,
  writer      int8 NOT NULL, -- token of the commit
  steps       bytea CHECK (engine.steps_legal(steps)), -- 16 bytes per change: node int4, state int1, failures int1, attempt int2, complete_by int8 (us since 2000)
  data        bytea NOT NULL CHECK (length(data) > 0),
  PRIMARY KEY (run_id, seq),
  CHECK (seq > 0 OR workflow_id IS NOT NULL AND run_state IS NOT NULL AND owner IS NOT NULL AND next_check IS NOT NULL)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.4);
-- The row that expands a wide for_each is read in slices.
ALTER TABLE engine.journal ALTER COLUMN steps SET STORAGE EXTERNAL;

-- Public names, and the unique key each run was submitted with.
CREATE TABLE engine.run_name (
  run_id int8 PRIMARY KEY,
  name   text NOT NULL UNIQUE CHECK (name <> '' AND char_length(name) <= 100),
  key    text CHECK (key <> '' AND octet_length(key) <= 1024)
);
CREATE INDEX run_name_key ON engine.run_name (key) WHERE key IS NOT NULL;

-- Which run holds a unique key, written in the submission's transaction. A
-- later run replaces one that freed the key.
CREATE TABLE engine.context (
  workflow text,
  key      text,
  run_id   int8 NOT NULL,
  PRIMARY KEY (workflow, key)
);

-- Instances of a for_each, written in the record that expands it.
CREATE TABLE engine.run_step (
  run_id int8,
  node   int4,
  step   int4 NOT NULL,
  name   text NOT NULL,
  PRIMARY KEY (run_id, node)
);

CREATE TABLE engine.alert (
  run_id  int8,
  seq     int4,
  n       int4, -- within the row
  at      timestamptz NOT NULL,
  kind    text NOT NULL,
  step    text NOT NULL,
  code    text NOT NULL,
  message text NOT NULL,
  PRIMARY KEY (run_id, seq, n)
);
CREATE INDEX alert_at ON engine.alert (at, run_id, seq, n);

-- Views for people. Names of states are those of engine/machine.
CREATE FUNCTION engine.be_int(b bytea, off int, n int) RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ('x' || lpad(encode(substr(b, off + 1, n), 'hex'), 16, '0'))::bit(64)::int8 $$;

CREATE FUNCTION engine.run_state(s int2) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE s WHEN 1 THEN 'queued' WHEN 2 THEN 'running' WHEN 3 THEN 'waiting' WHEN 4 THEN 'paused' WHEN 5 THEN 'compensating'
   WHEN 6 THEN 'parked' WHEN 7 THEN 'compensation_failed' WHEN 10 THEN 'succeeded' WHEN 11 THEN 'failed' WHEN 12 THEN 'compensated'
   WHEN 13 THEN 'cancelled' END $$;

CREATE FUNCTION engine.step_state(s int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE s WHEN 1 THEN 'pending' WHEN 2 THEN 'running' WHEN 3 THEN 'held' WHEN 4 THEN 'backoff' WHEN 5 THEN 'waiting'
   WHEN 6 THEN 'succeeded' WHEN 7 THEN 'skipped' WHEN 8 THEN 'caught' WHEN 9 THEN 'failed' WHEN 10 THEN 'cancelled'
   WHEN 11 THEN 'undoing' WHEN 12 THEN 'undone' WHEN 13 THEN 'undo_failed' END $$;

CREATE VIEW engine.runs AS
SELECT r.run_id, coalesce(n.name, r.run_id::text) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS state,
       nullif(r.owner, 0) AS locked_by, coalesce(NOT m.dead AND m.lease_until > clock_timestamp(), false) AS owner_alive,
       nullif(r.next_check, 'infinity') AS next_check, r.created_at, r.finished_at, w.digest
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN engine.member m ON m.engine = r.owner;

CREATE VIEW engine.steps AS
SELECT r.run_id, coalesce(n.name, r.run_id::text) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS run_state,
       x.node, x.name AS step, engine.step_state(coalesce(get_byte(x.c, 4), 1)) AS state, coalesce(engine.be_int(x.c, 6, 2)::int4, 0) AS attempt,
       coalesce(get_byte(x.c, 5), 0) AS failure_count, CASE WHEN get_byte(x.c, 4) = 2 THEN r.owner END AS locked_by,
       timestamptz '2000-01-01 00:00:00+00' + nullif(engine.be_int(x.c, 8, 8), 0) * interval '1 microsecond' AS complete_by
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
-- Everything of one run stands inside: a run with 10,000 instances joins its
-- two lists once. c is the last change of a node.
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
