-- +goose Up

-- Times are microseconds since 1970. Numbers of states are those of
-- engine/machine. The views runs and steps at the end are for people.

PRAGMA application_id = 0x53414741;

-- Who is alive. A row is one incarnation of an engine; the number is new at
-- every start of a process.
CREATE TABLE member (
  engine      INTEGER PRIMARY KEY AUTOINCREMENT,
  address     TEXT NOT NULL,
  joined_at   INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  dead        INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1))
) STRICT;

-- One row per writer that may commit.
CREATE TABLE fence (
  engine INTEGER,
  writer INTEGER,
  PRIMARY KEY (engine, writer)
) STRICT, WITHOUT ROWID;

-- What holds for the whole file. key: id of the encryption key.
CREATE TABLE setting (
  name  TEXT PRIMARY KEY CHECK (name <> ''),
  value TEXT NOT NULL CHECK (value <> '')
) STRICT, WITHOUT ROWID;

CREATE TABLE definition (
  digest     TEXT PRIMARY KEY,
  data       BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE workflow (
  workflow_id INTEGER PRIMARY KEY AUTOINCREMENT,
  digest      TEXT NOT NULL REFERENCES definition,
  name        TEXT NOT NULL,
  UNIQUE (digest, name)
) STRICT;
CREATE INDEX workflow_name ON workflow (name);
-- Names of steps, written with the definition: every step of a run shows from
-- its submission without a byte of journal.
CREATE TABLE workflow_step (
  workflow_id INTEGER REFERENCES workflow,
  node        INTEGER,
  name        TEXT NOT NULL,
  PRIMARY KEY (workflow_id, node)
) STRICT, WITHOUT ROWID;

-- A fold of the journal.
CREATE TABLE run (
  run_id      INTEGER PRIMARY KEY CHECK (run_id > 0),
  workflow_id INTEGER NOT NULL,
  state       INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7 OR state BETWEEN 10 AND 13),
  owner       INTEGER NOT NULL CHECK (owner >= 0), -- 0 = nobody
  fence       INTEGER NOT NULL,                    -- seq of the record that made owner the owner
  next_check  INTEGER NOT NULL,                    -- lower bound of the earliest due time
  created_at  INTEGER NOT NULL,
  finished_at INTEGER,
  CHECK ((finished_at IS NOT NULL) = (state >= 10))
) STRICT;
CREATE INDEX run_active ON run (owner, next_check) WHERE state < 10;

-- +goose StatementBegin
CREATE TRIGGER run_transition BEFORE UPDATE OF state ON run
  WHEN OLD.state <> NEW.state AND (OLD.state >= 10 AND NOT (OLD.state = 10 AND NEW.state = 5) OR NEW.state = 1)
BEGIN
  SELECT RAISE(ABORT, 'a run in this state cannot become that');
END;
-- +goose StatementEnd

-- The truth. Insert only; (run_id, seq) is the optimistic lock. steps holds 16
-- bytes per change, big endian: node int4, state int1, failures int1, attempt
-- int2, complete_by int8 (microseconds since 2000, 0 = none). The constraint
-- looks at the first four; rows with more are rare, and have the trigger.
CREATE TABLE journal (
  run_id      INTEGER,
  seq         INTEGER CHECK (seq >= 0),
  at          INTEGER NOT NULL,
  workflow_id INTEGER, -- with run_state, owner and next_check: what the run row becomes; NULL = unchanged
  run_state   INTEGER,
  owner       INTEGER,
  next_check  INTEGER,
  writer      INTEGER NOT NULL, -- token of the commit
  steps       BLOB CHECK (length(steps) % 16 = 0
    AND substr(steps, 5, 1) BETWEEN x'01' AND x'0d' AND NOT (substr(steps, 5, 1) = x'02' AND substr(steps, 9, 8) = zeroblob(8))
    AND (length(steps) < 32 OR substr(steps, 21, 1) BETWEEN x'01' AND x'0d' AND NOT (substr(steps, 21, 1) = x'02' AND substr(steps, 25, 8) = zeroblob(8)))
    AND (length(steps) < 48 OR substr(steps, 37, 1) BETWEEN x'01' AND x'0d' AND NOT (substr(steps, 37, 1) = x'02' AND substr(steps, 41, 8) = zeroblob(8)))
    AND (length(steps) < 64 OR substr(steps, 53, 1) BETWEEN x'01' AND x'0d' AND NOT (substr(steps, 53, 1) = x'02' AND substr(steps, 57, 8) = zeroblob(8)))),
  data        BLOB NOT NULL CHECK (length(data) > 0),
  PRIMARY KEY (run_id, seq),
  CHECK (seq > 0 OR workflow_id IS NOT NULL AND run_state IS NOT NULL AND owner IS NOT NULL AND next_check IS NOT NULL)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
-- json_each over as many zeros as there are entries counts them: SQLite has no
-- other series that a trigger or a correlated query may use.
CREATE TRIGGER journal_steps BEFORE INSERT ON journal
  WHEN length(NEW.steps) > 64
BEGIN
  SELECT RAISE(ABORT, 'illegal step in a row of the journal')
  FROM json_each('[0' || replace(hex(zeroblob(length(NEW.steps) / 16 - 1)), '00', ',0') || ']') e
  WHERE substr(NEW.steps, e.key * 16 + 5, 1) NOT BETWEEN x'01' AND x'0d'
     OR substr(NEW.steps, e.key * 16 + 5, 1) = x'02' AND substr(NEW.steps, e.key * 16 + 9, 8) = zeroblob(8);
END;
-- +goose StatementEnd

-- Public names, and the unique key each run was submitted with.
CREATE TABLE run_name (
  run_id INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
  key    TEXT CHECK (key <> '' AND length(CAST(key AS BLOB)) <= 1024)
) STRICT;
CREATE INDEX run_name_key ON run_name (key) WHERE key IS NOT NULL;

-- Which run holds a unique key, written in the submission's transaction. A
-- later run replaces one that freed the key.
CREATE TABLE context (
  workflow TEXT,
  key      TEXT,
  run_id   INTEGER NOT NULL,
  PRIMARY KEY (workflow, key)
) STRICT, WITHOUT ROWID;

-- Instances of a for_each, written in the record that expands it.
CREATE TABLE run_step (
  run_id INTEGER,
  node   INTEGER,
  step   INTEGER NOT NULL,
  name   TEXT NOT NULL,
  PRIMARY KEY (run_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE alert (
  run_id  INTEGER,
  seq     INTEGER,
  n       INTEGER, -- within the row
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  step    TEXT NOT NULL,
  code    TEXT NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY (run_id, seq, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_at ON alert (at, run_id, seq, n);

-- Names of states, and the numbers of two hex digits: SQLite cannot turn bytes
-- into a number. Nothing here needs more than SQLite 3.38.
CREATE TABLE run_state (state INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
INSERT INTO run_state VALUES (1, 'queued'), (2, 'running'), (3, 'waiting'), (4, 'paused'), (5, 'compensating'), (6, 'parked'),
  (7, 'compensation_failed'), (10, 'succeeded'), (11, 'failed'), (12, 'compensated'), (13, 'cancelled');
CREATE TABLE step_state (state INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
INSERT INTO step_state VALUES (1, 'pending'), (2, 'running'), (3, 'held'), (4, 'backoff'), (5, 'waiting'), (6, 'succeeded'),
  (7, 'skipped'), (8, 'caught'), (9, 'failed'), (10, 'cancelled'), (11, 'undoing'), (12, 'undone'), (13, 'undo_failed');
CREATE TABLE byte (hex TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO byte WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 255) SELECT printf('%02X', n), n FROM c;

CREATE VIEW runs AS
SELECT r.run_id, coalesce(n.name, CAST(r.run_id AS TEXT)) AS run, w.name AS workflow, n.key, s.name AS state,
       nullif(r.owner, 0) AS locked_by,
       coalesce(NOT m.dead AND m.lease_until > (julianday('now') - 2440587.5) * 86400000000, 0) AS owner_alive,
       CASE WHEN r.next_check < 253402214400000000 THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.next_check / 1000000.0, 'unixepoch') END AS next_check,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_at / 1000000.0, 'unixepoch') AS finished_at, w.digest
FROM run r JOIN workflow w USING (workflow_id) JOIN run_state s ON s.state = r.state
LEFT JOIN run_name n ON n.run_id = r.run_id LEFT JOIN member m ON m.engine = r.owner;

CREATE VIEW steps AS
WITH node AS (
  SELECT r.run_id, s.node, s.name FROM run r JOIN workflow_step s ON s.workflow_id = r.workflow_id
  UNION ALL SELECT run_id, node, name FROM run_step
), change AS (
  -- c is the last change of the node, in 32 hex digits.
  SELECT d.run_id, d.node, d.name, (
    SELECT substr(hex(j.steps), e.key * 32 + 1, 32)
    FROM journal j, json_each('[0' || replace(hex(zeroblob(length(j.steps) / 16 - 1)), '00', ',0') || ']') e
    WHERE j.run_id = d.run_id AND j.steps IS NOT NULL AND hex(substr(j.steps, e.key * 16 + 1, 4)) = printf('%08X', d.node)
    ORDER BY j.seq DESC, e.key DESC LIMIT 1) AS c
  FROM node d
)
SELECT r.run_id, coalesce(n.name, CAST(r.run_id AS TEXT)) AS run, w.name AS workflow, n.key, rs.name AS run_state,
       x.node, x.name AS step, coalesce(ss.name, 'pending') AS state,
       coalesce((SELECT value FROM byte WHERE hex = substr(c, 13, 2)) * 256 + (SELECT value FROM byte WHERE hex = substr(c, 15, 2)), 0) AS attempt,
       coalesce((SELECT value FROM byte WHERE hex = substr(c, 11, 2)), 0) AS failure_count,
       CASE WHEN ss.state = 2 THEN r.owner END AS locked_by,
       CASE WHEN substr(c, 17) <> '0000000000000000' THEN strftime('%Y-%m-%dT%H:%M:%fZ', 946684800 + (
         ((SELECT value FROM byte WHERE hex = substr(c, 19, 2)) << 48) + ((SELECT value FROM byte WHERE hex = substr(c, 21, 2)) << 40)
         + ((SELECT value FROM byte WHERE hex = substr(c, 23, 2)) << 32) + ((SELECT value FROM byte WHERE hex = substr(c, 25, 2)) << 24)
         + ((SELECT value FROM byte WHERE hex = substr(c, 27, 2)) << 16) + ((SELECT value FROM byte WHERE hex = substr(c, 29, 2)) << 8)
         + (SELECT value FROM byte WHERE hex = substr(c, 31, 2))) / 1000000.0, 'unixepoch') END AS complete_by
FROM change x JOIN run r ON r.run_id = x.run_id JOIN workflow w USING (workflow_id) JOIN run_state rs ON rs.state = r.state
LEFT JOIN step_state ss ON ss.state = (SELECT value FROM byte WHERE hex = substr(c, 9, 2))
LEFT JOIN run_name n ON n.run_id = r.run_id;
