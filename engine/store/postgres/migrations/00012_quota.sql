-- +goose Up

-- The limits of agents (max_concurrency, rate_limit) that engines share. A row of quota has no
-- data. An engine locks the row while it computes its part of the limit from the other two tables.
CREATE TABLE engine.quota (
  name text PRIMARY KEY
);

-- The slots of a limit that an engine holds. They count up to the time in the column until,
-- even if the engine is dead, because its calls may still run.
CREATE TABLE engine.quota_slot (
  name   text NOT NULL,
  engine int4 NOT NULL,
  most   int4 NOT NULL CHECK (most > 0),
  slots  int4 NOT NULL CHECK (slots >= 0),
  want   int4 NOT NULL CHECK (want >= 0),
  since  timestamptz NOT NULL,
  seen   timestamptz NOT NULL,
  until  timestamptz NOT NULL,
  PRIMARY KEY (name, engine)
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);

-- The calls that count against a rate limit. A row holds the calls that count up to the same time.
CREATE TABLE engine.quota_call (
  name  text NOT NULL,
  until timestamptz NOT NULL,
  calls int4 NOT NULL CHECK (calls > 0),
  PRIMARY KEY (name, until)
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);
