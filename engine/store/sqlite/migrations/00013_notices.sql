-- +goose Up

-- The states of runs that notify blocks announce, each with the number of the row of the
-- journal with which the run reached it. The row of the journal and the notice are one
-- commit.
CREATE TABLE notice (
  run_id INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  state  TEXT NOT NULL,
  done   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, seq, state)
) STRICT, WITHOUT ROWID;

-- What has not been announced yet: usually nothing.
CREATE INDEX notice_open ON notice (run_id, seq, state) WHERE done = 0;
