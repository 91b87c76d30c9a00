-- +goose Up

-- The state of a long run after the first rows of its journal, the latest only. It is computed
-- from these rows: the journal is right if the two differ.
CREATE TABLE snapshot (
  run_id INTEGER PRIMARY KEY,
  next   INTEGER NOT NULL CHECK (next > 0), -- number of rows that it covers
  data   BLOB NOT NULL
) STRICT;
