-- +goose Up

-- The published definition of each workflow. Schedules start runs of this definition. The column
-- given holds the values of deployment variables; it may be sealed.
CREATE TABLE engine.published (
  workflow     text COLLATE "C" PRIMARY KEY,
  workflow_id  int4 NOT NULL REFERENCES engine.workflow,
  published_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  published_by text NOT NULL,
  given        bytea NOT NULL
);

-- The schedules of published workflows. An engine changes a schedule only if the schedule still has
-- the version that the engine has read. So only one engine decides each tick.
CREATE TABLE engine.schedule (
  workflow  text COLLATE "C" NOT NULL REFERENCES engine.published ON DELETE CASCADE,
  name      text COLLATE "C" NOT NULL,
  timetable text NOT NULL,
  next_tick timestamptz NOT NULL,
  last_tick timestamptz,
  last_run  text NOT NULL DEFAULT '',
  paused    bool NOT NULL DEFAULT false,
  version   int8 NOT NULL DEFAULT 1,
  PRIMARY KEY (workflow, name)
);
CREATE INDEX schedule_due ON engine.schedule (next_tick) WHERE NOT paused;
