-- +goose Up

-- The firings of selections. A firing starts one run for each row that the query of a select block
-- returns at a tick. One engine at a time works on a firing, until held_until. Each change of its
-- progress increases the version and needs the version that the engine has read. So an engine that
-- has lost a firing cannot change it. The columns from_at and to_at are the interval that a firing of
-- the strategy window covers.
CREATE TABLE engine.firing (
  firing_id   int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workflow    text COLLATE "C" NOT NULL,
  schedule    text COLLATE "C" NOT NULL,
  tick        timestamptz NOT NULL,
  workflow_id int4 NOT NULL REFERENCES engine.workflow,
  opened_by   text NOT NULL,
  opened_at   timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  ended_at    timestamptz,
  from_at     timestamptz,
  to_at       timestamptz,
  args        jsonb NOT NULL DEFAULT '{}',
  state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'complete', 'cancelled')),
  pass        int4 NOT NULL DEFAULT 0,
  fresh       bool NOT NULL DEFAULT false,
  watermark   text,
  selected    int8 NOT NULL DEFAULT 0,
  started     int8 NOT NULL DEFAULT 0,
  refused     int8 NOT NULL DEFAULT 0,
  filtered    int8 NOT NULL DEFAULT 0,
  quarantined int8 NOT NULL DEFAULT 0,
  vanished    int8 NOT NULL DEFAULT 0,
  missed      int8 NOT NULL DEFAULT 0,
  error       text NOT NULL DEFAULT '',
  holder      text NOT NULL DEFAULT '',
  held_until  timestamptz NOT NULL DEFAULT '-infinity',
  version     int8 NOT NULL DEFAULT 1,
  UNIQUE (workflow, schedule, tick)
) WITH (fillfactor = 50);
CREATE INDEX firing_open ON engine.firing (firing_id) WHERE state = 'open';
CREATE INDEX firing_window ON engine.firing (workflow, schedule, to_at) WHERE to_at IS NOT NULL;

-- The keys that an open firing has handed on, for the strategies that read the rows several times.
CREATE TABLE engine.firing_key (
  firing_id int8 NOT NULL REFERENCES engine.firing ON DELETE CASCADE,
  key       text COLLATE "C" NOT NULL,
  PRIMARY KEY (firing_id, key)
);

-- Rows that could start no run, with the reason. The key is NULL if the rows have none.
CREATE TABLE engine.quarantine (
  quarantine_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  firing_id     int8 NOT NULL REFERENCES engine.firing ON DELETE CASCADE,
  key           text COLLATE "C",
  at            timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  error         text NOT NULL
);
CREATE INDEX quarantine_firing ON engine.quarantine (firing_id, quarantine_id);
