-- +goose Up

-- The latest snapshot of each long run: the state of the run after the first rows of its journal. A
-- snapshot is computed from these rows. If snapshot and journal differ, the journal is right.
CREATE TABLE engine.snapshot (
  run_id int8 PRIMARY KEY,
  next   int4 NOT NULL CHECK (next > 0), -- number of journal rows that the snapshot covers
  data   bytea NOT NULL
) WITH (autovacuum_vacuum_cost_delay = 0);
