-- +goose Up

-- The latest snapshot of each long run: the state of the run after the first rows of its journal. A
-- snapshot is computed from these rows. If snapshot and journal differ, the journal is right.
CREATE TABLE snapshot (
  run_id INTEGER PRIMARY KEY,
  next   INTEGER NOT NULL CHECK (next > 0), -- number of journal rows that the snapshot covers
  data   BLOB NOT NULL
) STRICT;
