-- +goose Up

-- The runs that share a limit with others (concurrency of a workflow). A run that has
-- ended, or is gone, counts no more: its row goes later, when the next run is admitted.
CREATE TABLE engine.place (
  run_id   int8 PRIMARY KEY,
  workflow text NOT NULL CHECK (workflow <> ''),
  key      text NOT NULL, -- '' = the workflow has one limit
  slots    int4 NOT NULL CHECK (slots > 0), -- the limit, as this run has it
  rank     timestamptz NOT NULL, -- the earliest is the first in line
  admitted boolean NOT NULL
) WITH (autovacuum_vacuum_cost_delay = 0);
CREATE INDEX place_held ON engine.place (workflow, key) WHERE admitted;
CREATE INDEX place_line ON engine.place (workflow, key, rank, run_id) WHERE NOT admitted;
