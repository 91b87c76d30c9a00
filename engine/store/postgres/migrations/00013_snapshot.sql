-- +goose Up

-- The state of a long run after the first rows of its journal, the latest only. It is computed
-- from these rows: the journal is right if the two differ.
CREATE TABLE engine.snapshot (
  run_id int8 PRIMARY KEY,
  next   int4 NOT NULL CHECK (next > 0), -- number of rows that it covers
  data   bytea NOT NULL
) WITH (autovacuum_vacuum_cost_delay = 0);
