-- +goose Up

-- The journal's rows stand in the order of their commits, and (run_id, seq) is
-- an index beside them: a commit of many runs then writes a few pages at the
-- end of the table, and not one for each run. What a trigger had to look at on
-- every row has a table of its own.

DROP VIEW steps;
DROP TRIGGER journal_steps;
ALTER TABLE journal RENAME TO journal_before;

-- The truth. Insert only; (run_id, seq) is the optimistic lock. steps holds 16
-- bytes per change, big endian: node int4, state int1, failures int1, attempt
-- int2, complete_by int8 (microseconds since 2000, 0 = none). A row that
-- changes more than four has them in the table wide.
CREATE TABLE journal (
  run_id      INTEGER NOT NULL,
  seq         INTEGER NOT NULL CHECK (seq >= 0),
  at          INTEGER NOT NULL,
  workflow_id INTEGER, -- with run_state, owner and next_check: what the run row becomes; NULL = unchanged
  run_state   INTEGER,
  owner       INTEGER,
  next_check  INTEGER,
  writer      INTEGER NOT NULL, -- token of the commit
  steps       BLOB CHECK (CASE length(steps)
    WHEN 16 THEN (substr(steps, 5, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 5, 1) <> x'02' OR substr(steps, 9, 8) <> x'0000000000000000'))
    WHEN 32 THEN (substr(steps, 5, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 5, 1) <> x'02' OR substr(steps, 9, 8) <> x'0000000000000000'))
      AND (substr(steps, 21, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 21, 1) <> x'02' OR substr(steps, 25, 8) <> x'0000000000000000'))
    WHEN 48 THEN (substr(steps, 5, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 5, 1) <> x'02' OR substr(steps, 9, 8) <> x'0000000000000000'))
      AND (substr(steps, 21, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 21, 1) <> x'02' OR substr(steps, 25, 8) <> x'0000000000000000'))
      AND (substr(steps, 37, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 37, 1) <> x'02' OR substr(steps, 41, 8) <> x'0000000000000000'))
    WHEN 64 THEN (substr(steps, 5, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 5, 1) <> x'02' OR substr(steps, 9, 8) <> x'0000000000000000'))
      AND (substr(steps, 21, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 21, 1) <> x'02' OR substr(steps, 25, 8) <> x'0000000000000000'))
      AND (substr(steps, 37, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 37, 1) <> x'02' OR substr(steps, 41, 8) <> x'0000000000000000'))
      AND (substr(steps, 53, 1) BETWEEN x'01' AND x'0d' AND (substr(steps, 53, 1) <> x'02' OR substr(steps, 57, 8) <> x'0000000000000000'))
    ELSE steps IS NULL END),
  data        BLOB NOT NULL CHECK (data <> x''),
  PRIMARY KEY (run_id, seq),
  CHECK (seq > 0 OR workflow_id IS NOT NULL AND run_state IS NOT NULL AND owner IS NOT NULL AND next_check IS NOT NULL)
) STRICT;

-- The changes of rows that change more than four steps.
CREATE TABLE wide (
  run_id INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  steps  BLOB NOT NULL CHECK (length(steps) > 64 AND length(steps) % 16 = 0),
  PRIMARY KEY (run_id, seq)
) STRICT;

-- +goose StatementBegin
-- json_each over as many zeros as there are entries counts them: SQLite has no
-- other series that a trigger or a correlated query may use.
CREATE TRIGGER wide_steps BEFORE INSERT ON wide
BEGIN
  SELECT RAISE(ABORT, 'illegal step in a row of the journal')
  FROM json_each('[0' || replace(hex(zeroblob(length(NEW.steps) / 16 - 1)), '00', ',0') || ']') e
  WHERE substr(NEW.steps, e.key * 16 + 5, 1) NOT BETWEEN x'01' AND x'0d'
     OR substr(NEW.steps, e.key * 16 + 5, 1) = x'02' AND substr(NEW.steps, e.key * 16 + 9, 8) = zeroblob(8);
END;
-- +goose StatementEnd

INSERT INTO journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, steps, data)
SELECT run_id, seq, at, workflow_id, run_state, owner, next_check, writer, CASE WHEN length(steps) BETWEEN 16 AND 64 THEN steps END, data
FROM journal_before ORDER BY run_id, seq;
INSERT INTO wide (run_id, seq, steps) SELECT run_id, seq, steps FROM journal_before WHERE length(steps) > 64;
DROP TABLE journal_before;

-- The last change of each step, found in one walk over the changes of the run
-- however many there are: state is an object from node to the change in 32 hex
-- digits, or '' where nothing has changed yet.
CREATE VIEW steps AS
SELECT r.run_id, coalesce(n.name, CAST(r.run_id AS TEXT)) AS run, w.name AS workflow, n.key, rs.name AS run_state,
       CAST(x.key AS INTEGER) AS node, coalesce(i.name, s.name) AS step, coalesce(ss.name, 'pending') AS state,
       coalesce((SELECT value FROM byte WHERE hex = substr(x.value, 13, 2)) * 256 + (SELECT value FROM byte WHERE hex = substr(x.value, 15, 2)), 0) AS attempt,
       coalesce((SELECT value FROM byte WHERE hex = substr(x.value, 11, 2)), 0) AS failure_count,
       CASE WHEN ss.state = 2 THEN r.owner END AS locked_by,
       CASE WHEN substr(x.value, 17) NOT IN ('', '0000000000000000') THEN strftime('%Y-%m-%dT%H:%M:%fZ', 946684800 + (
         ((SELECT value FROM byte WHERE hex = substr(x.value, 19, 2)) << 48) + ((SELECT value FROM byte WHERE hex = substr(x.value, 21, 2)) << 40)
         + ((SELECT value FROM byte WHERE hex = substr(x.value, 23, 2)) << 32) + ((SELECT value FROM byte WHERE hex = substr(x.value, 25, 2)) << 24)
         + ((SELECT value FROM byte WHERE hex = substr(x.value, 27, 2)) << 16) + ((SELECT value FROM byte WHERE hex = substr(x.value, 29, 2)) << 8)
         + (SELECT value FROM byte WHERE hex = substr(x.value, 31, 2))) / 1000000.0, 'unixepoch') END AS complete_by
FROM run r CROSS JOIN workflow w ON w.workflow_id = r.workflow_id CROSS JOIN run_state rs ON rs.state = r.state
LEFT JOIN run_name n ON n.run_id = r.run_id
CROSS JOIN json_each((
  SELECT json_group_object(node, last) FROM (
    SELECT max(node) AS node, substr(max(c), 21) AS last FROM (
      SELECT printf('%08X', node) AS id, node, printf('%020d', 0) AS c FROM workflow_step WHERE workflow_id = r.workflow_id
      UNION ALL SELECT printf('%08X', node), node, printf('%020d', 0) FROM run_step WHERE run_id = r.run_id
      UNION ALL SELECT hex(substr(j.steps, e.key * 16 + 1, 4)), NULL, printf('%010d%010d', j.seq, e.key + 1) || hex(substr(j.steps, e.key * 16 + 1, 16))
      FROM (SELECT seq, steps FROM journal WHERE run_id = r.run_id AND steps IS NOT NULL UNION ALL SELECT seq, steps FROM wide WHERE run_id = r.run_id) j,
        json_each('[0' || replace(hex(zeroblob(length(j.steps) / 16 - 1)), '00', ',0') || ']') e
    ) GROUP BY id HAVING max(node) IS NOT NULL
  )
)) x
LEFT JOIN workflow_step s ON s.workflow_id = r.workflow_id AND s.node = CAST(x.key AS INTEGER)
LEFT JOIN run_step i ON i.run_id = r.run_id AND i.node = CAST(x.key AS INTEGER)
LEFT JOIN step_state ss ON ss.state = (SELECT value FROM byte WHERE hex = substr(x.value, 9, 2));

-- Runs that retention has removed: what is left of them goes in small parts.
CREATE TABLE gone (run_id INTEGER PRIMARY KEY) STRICT;
