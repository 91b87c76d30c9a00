-- +goose Up

-- The runs that share a limit with other runs (block concurrency of a workflow). A run that has
-- ended, or that retention has removed, does not count. Its row is removed later: when the next
-- run is admitted, or by retention.
CREATE TABLE place (
  run_id   INTEGER PRIMARY KEY,
  workflow TEXT NOT NULL CHECK (workflow <> ''),
  key      TEXT NOT NULL, -- '' = the workflow has one limit for all its runs
  slots    INTEGER NOT NULL CHECK (slots > 0), -- the limit with which this run was submitted
  rank     INTEGER NOT NULL, -- microseconds since 1970; the smallest is the first in line
  admitted INTEGER NOT NULL CHECK (admitted IN (0, 1))
) STRICT;
CREATE INDEX place_held ON place (workflow, key) WHERE admitted = 1;
CREATE INDEX place_line ON place (workflow, key, rank, run_id) WHERE admitted = 0;
