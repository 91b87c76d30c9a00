-- +goose Up

-- The notices: states of runs that notify blocks announce. The column seq is the number of the
-- journal row with which the run reached the state. The journal row and the notice are written
-- in the same commit. The column done is true if engines have announced the notice.
CREATE TABLE notice (
  run_id INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  state  TEXT NOT NULL,
  done   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, seq, state)
) STRICT, WITHOUT ROWID;

-- The notices that are not announced yet. Usually there are none.
CREATE INDEX notice_open ON notice (run_id, seq, state) WHERE done = 0;
