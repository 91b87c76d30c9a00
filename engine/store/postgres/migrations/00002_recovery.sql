-- +goose Up

-- What anybody but its owner has to say to a run: it goes in the statement that
-- answers it. Ids rise and are never given twice.
CREATE TABLE engine.inbox (
  id     int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id int8 NOT NULL,
  at     timestamptz NOT NULL,
  kind   int2 NOT NULL CHECK (kind > 0), -- 1 = verb, 2 = reply
  by     text NOT NULL,
  dedup  text CHECK (dedup <> '' AND char_length(dedup) <= 100),
  data   bytea,
  UNIQUE (run_id, dedup)
);

-- When a pass that only one engine at a time should make may be made again.
CREATE TABLE engine.pass (
  name       text PRIMARY KEY,
  not_before timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Answers that came too late to count.
CREATE TABLE engine.late_reply (
  run_id  int8,
  node    int4,
  call    int4,
  outcome text,
  at      timestamptz NOT NULL,
  step    text NOT NULL,
  code    text NOT NULL,
  data    bytea,
  PRIMARY KEY (run_id, node, call, outcome)
);

-- The last lines that agents logged about a run.
CREATE TABLE engine.log (
  id      int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id  int8 NOT NULL,
  at      timestamptz NOT NULL,
  step    text NOT NULL,
  attempt int4 NOT NULL,
  level   text NOT NULL,
  message text NOT NULL
);
CREATE INDEX log_run ON engine.log (run_id, id);

-- Alerts get a rising id, and are an outbox: delivered_at tells which were
-- pushed to where people look.
ALTER TABLE engine.alert DROP CONSTRAINT alert_pkey;
DROP INDEX engine.alert_at;
ALTER TABLE engine.alert
  ADD COLUMN id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ADD COLUMN delivered_at timestamptz,
  DROP COLUMN seq,
  DROP COLUMN n;
ALTER TABLE engine.alert ALTER COLUMN run_id SET NOT NULL;
CREATE INDEX alert_at ON engine.alert (at, id);
CREATE INDEX alert_run ON engine.alert (run_id, at, id);
CREATE INDEX alert_undelivered ON engine.alert (id) WHERE delivered_at IS NULL;
