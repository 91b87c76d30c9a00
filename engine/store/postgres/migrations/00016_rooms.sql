-- +goose Up

-- The runs that share a limit with other runs (block concurrency of a workflow). A run that has
-- ended, or that retention has removed, does not count. Its row is removed later: when the next
-- run is admitted, or by retention.
CREATE TABLE engine.place (
  run_id   int8 PRIMARY KEY,
  workflow text NOT NULL CHECK (workflow <> ''),
  key      text NOT NULL, -- '' = the workflow has one limit for all its runs
  slots    int4 NOT NULL CHECK (slots > 0), -- the limit with which this run was submitted
  rank     timestamptz NOT NULL, -- the run with the earliest rank is the first in line
  admitted boolean NOT NULL
) WITH (autovacuum_vacuum_cost_delay = 0);
CREATE INDEX place_held ON engine.place (workflow, key) WHERE admitted;
CREATE INDEX place_line ON engine.place (workflow, key, rank, run_id) WHERE NOT admitted;
