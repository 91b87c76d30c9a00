-- +goose Up

-- The published definition of each workflow. Schedules start runs of this definition. The column
-- given holds the values of deployment variables; it may be sealed.
CREATE TABLE published (
  workflow     TEXT PRIMARY KEY,
  workflow_id  INTEGER NOT NULL REFERENCES workflow,
  published_at INTEGER NOT NULL,
  published_by TEXT NOT NULL,
  given        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The schedules of published workflows. Times are microseconds since 1970. An engine changes a
-- schedule only if the schedule still has the version that the engine has read. So only one engine
-- decides each tick.
CREATE TABLE schedule (
  workflow  TEXT NOT NULL REFERENCES published ON DELETE CASCADE,
  name      TEXT NOT NULL,
  timetable TEXT NOT NULL,
  next_tick INTEGER NOT NULL,
  last_tick INTEGER,
  last_run  TEXT NOT NULL DEFAULT '',
  paused    INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  version   INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (workflow, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (next_tick) WHERE paused = 0;
