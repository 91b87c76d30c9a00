-- +goose Up

-- The runs that share a limit with others (concurrency of a workflow). A run that has
-- ended, or is gone, counts no more: its row goes later, when the next run is admitted.
CREATE TABLE place (
  run_id   INTEGER PRIMARY KEY,
  workflow TEXT NOT NULL CHECK (workflow <> ''),
  key      TEXT NOT NULL, -- '' = the workflow has one limit
  slots    INTEGER NOT NULL CHECK (slots > 0), -- the limit, as this run has it
  rank     INTEGER NOT NULL, -- the smallest is the first in line
  admitted INTEGER NOT NULL CHECK (admitted IN (0, 1))
) STRICT;
CREATE INDEX place_held ON place (workflow, key) WHERE admitted = 1;
CREATE INDEX place_line ON place (workflow, key, rank, run_id) WHERE admitted = 0;
