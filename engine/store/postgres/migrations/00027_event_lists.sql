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

-- The kind of start of a run (naming.Trigger). A run without a row in run_name was started by hand. Runs
-- that were accepted before have 0, or 5 if they are child runs. The default rewrites no row.
ALTER TABLE engine.run_name ADD COLUMN trigger int2 NOT NULL DEFAULT 0;
UPDATE engine.run_name SET trigger = 5 WHERE parent IS NOT NULL;
CREATE FUNCTION engine.run_trigger(t int2) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['manual', 'event', 'schedule', 'selection', 'submitted', 'parent', 'notify'])[coalesce(t, 0) + 1];

CREATE OR REPLACE VIEW engine.runs AS
SELECT r.run_id, coalesce(n.name, engine.run_public(r.run_id)) AS run, w.name AS workflow, n.key, engine.run_state(r.state) AS status,
       nullif(r.owner, 0) AS locked_by, coalesce(NOT m.dead AND m.lease_until > clock_timestamp(), false) AS owner_alive,
       nullif(r.next_check, 'infinity') AS next_check, r.created_at, r.finished_at, w.digest, engine.run_state(r.state) AS state,
       engine.run_trigger(n.trigger) AS trigger
FROM engine.run r
JOIN engine.workflow w USING (workflow_id)
LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN engine.member m ON m.engine = r.owner;
