-- +goose Up

-- What anybody but its owner has to say to a run: it goes in the transaction
-- that answers it. Ids rise and are never given twice.
CREATE TABLE inbox (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  kind   INTEGER NOT NULL CHECK (kind > 0), -- 1 = verb, 2 = reply
  by     TEXT NOT NULL,
  dedup  TEXT CHECK (dedup <> '' AND length(dedup) <= 100),
  data   BLOB,
  UNIQUE (run_id, dedup)
) STRICT;

-- When a pass that only one engine at a time should make may be made again.
CREATE TABLE pass (
  name       TEXT PRIMARY KEY,
  not_before INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers that came too late to count.
CREATE TABLE late_reply (
  run_id  INTEGER NOT NULL,
  node    INTEGER NOT NULL,
  call    INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  at      INTEGER NOT NULL,
  step    TEXT NOT NULL,
  code    TEXT NOT NULL,
  data    BLOB,
  UNIQUE (run_id, node, call, outcome)
) STRICT;

-- The last lines that agents logged about a run.
CREATE TABLE log (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id  INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  step    TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  level   TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;
CREATE INDEX log_run ON log (run_id, id);

-- Alerts get a rising id, and are an outbox: delivered_at tells which were
-- pushed to where people look.
ALTER TABLE alert RENAME TO alert_before;
DROP INDEX alert_at;
CREATE TABLE alert (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id       INTEGER NOT NULL,
  at           INTEGER NOT NULL,
  kind         TEXT NOT NULL,
  step         TEXT NOT NULL,
  code         TEXT NOT NULL,
  message      TEXT NOT NULL,
  delivered_at INTEGER
) STRICT;
INSERT INTO alert (run_id, at, kind, step, code, message)
SELECT run_id, at, kind, step, code, message FROM alert_before ORDER BY at, run_id, seq, n;
DROP TABLE alert_before;
CREATE INDEX alert_at ON alert (at, id);
CREATE INDEX alert_run ON alert (run_id, at, id);
CREATE INDEX alert_undelivered ON alert (id) WHERE delivered_at IS NULL;

-- A takeover goes through the open runs of the dead in pages, by their number.
CREATE INDEX run_owned ON run (owner, run_id) WHERE state < 10;
