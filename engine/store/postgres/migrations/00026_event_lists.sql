-- +goose Up

-- An event can start a run for each key of a list. The column lists says for each workflow how far
-- engines have come. Each change of it increases the version and needs the version that the engine has
-- read. So an engine that has lost its claim changes nothing.
ALTER TABLE engine.events
  ADD COLUMN lists jsonb NOT NULL DEFAULT '[]',
  ADD COLUMN version int8 NOT NULL DEFAULT 0;

-- The keys of events that could start no run, with the reason. A key waits after a person has retried
-- its event.
CREATE TABLE engine.event_key (
  seq      int8 NOT NULL REFERENCES engine.events ON DELETE CASCADE,
  workflow text COLLATE "C" NOT NULL,
  key      text COLLATE "C" NOT NULL,
  at       timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  error    text NOT NULL,
  waits    bool NOT NULL DEFAULT false,
  PRIMARY KEY (seq, workflow, key)
);

-- An event can open a firing of a selection. The column event has the id of the event, and the column
-- schedule has the name of the on_event block; event = '' means that a schedule opened the firing. The
-- column runs is the beginning of the names of all runs of the firing. Retention keeps a firing while
-- one of these runs exists.
ALTER TABLE engine.firing
  ADD COLUMN event text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN runs  text COLLATE "C" NOT NULL DEFAULT '';
UPDATE engine.firing SET runs = workflow || '.' || schedule || '.' || pg_catalog.to_char(tick AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISS"Z"') || '.';
ALTER TABLE engine.firing DROP CONSTRAINT firing_workflow_schedule_tick_key;
CREATE UNIQUE INDEX firing_tick ON engine.firing (workflow, schedule, tick) WHERE event = '';
CREATE UNIQUE INDEX firing_event ON engine.firing (workflow, event) WHERE event <> '';
