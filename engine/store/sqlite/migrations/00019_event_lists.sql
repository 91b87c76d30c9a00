-- +goose Up

-- An event can start a run for each key of a list. The column lists says for each workflow how far
-- engines have come, as a JSON list. Each change of it increases the version.
ALTER TABLE event ADD COLUMN lists TEXT NOT NULL DEFAULT '[]';
ALTER TABLE event ADD COLUMN version INTEGER NOT NULL DEFAULT 0;

-- The keys of events that could start no run, with the reason. A key waits after a person has retried
-- its event.
CREATE TABLE event_key (
  seq      INTEGER NOT NULL REFERENCES event ON DELETE CASCADE,
  workflow TEXT NOT NULL,
  key      TEXT NOT NULL,
  error    TEXT NOT NULL,
  waits    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (seq, workflow, key)
) STRICT, WITHOUT ROWID;

-- The kind of start of a run (naming.Trigger). A run without a row in run_name was started by hand. Runs
-- that were accepted before have 0, or 5 if they are child runs.
ALTER TABLE run_name ADD COLUMN "trigger" INTEGER NOT NULL DEFAULT 0;
UPDATE run_name SET "trigger" = 5 WHERE parent IS NOT NULL;

CREATE TABLE run_trigger ("trigger" INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
INSERT INTO run_trigger VALUES (0, 'manual'), (1, 'event'), (2, 'schedule'), (3, 'selection'), (4, 'submitted'), (5, 'parent'), (6, 'notify');

DROP VIEW runs;
CREATE VIEW runs AS
SELECT r.run_id, n.run, w.name AS workflow, n.key, s.name AS status,
       nullif(r.owner, 0) AS locked_by,
       coalesce(NOT m.dead AND m.lease_until > (julianday('now') - 2440587.5) * 86400000000, 0) AS owner_alive,
       CASE WHEN r.next_check < 253402214400000000 THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.next_check / 1000000.0, 'unixepoch') END AS next_check,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_at / 1000000.0, 'unixepoch') AS finished_at, w.digest, s.name AS state,
       (SELECT t.name FROM run_trigger t WHERE t."trigger" = coalesce(rn."trigger", 0)) AS "trigger"
FROM run r JOIN workflow w USING (workflow_id) JOIN run_state s ON s.state = r.state
JOIN run_public n ON n.run_id = r.run_id LEFT JOIN run_name rn ON rn.run_id = r.run_id LEFT JOIN member m ON m.engine = r.owner;
