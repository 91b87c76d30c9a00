-- +goose Up

-- The next two tables hold the limits of agents (max_concurrency, rate_limit). Times are
-- microseconds since 1970.

-- The slots of a limit that an engine holds. They count up to the time in the column until,
-- even if the engine is dead, because its calls may still run.
CREATE TABLE quota_slot (
  name   TEXT NOT NULL,
  engine INTEGER NOT NULL,
  most   INTEGER NOT NULL CHECK (most > 0),
  slots  INTEGER NOT NULL CHECK (slots >= 0),
  want   INTEGER NOT NULL CHECK (want >= 0),
  since  INTEGER NOT NULL,
  seen   INTEGER NOT NULL,
  until  INTEGER NOT NULL,
  PRIMARY KEY (name, engine)
) STRICT, WITHOUT ROWID;

-- The calls that count against a rate limit. A row holds the calls that count up to the same time.
CREATE TABLE quota_call (
  name  TEXT NOT NULL,
  until INTEGER NOT NULL,
  calls INTEGER NOT NULL CHECK (calls > 0),
  PRIMARY KEY (name, until)
) STRICT, WITHOUT ROWID;
