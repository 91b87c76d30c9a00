-- +goose Up

-- The notices: states of runs that notify blocks announce. The column seq is the number of the
-- journal row with which the run reached the state. The journal row and the notice are written
-- in the same commit. The column done is true if engines have announced the notice.
CREATE TABLE engine.notice (
  run_id int8 NOT NULL,
  seq    int4 NOT NULL,
  state  text NOT NULL,
  done   boolean NOT NULL DEFAULT false,
  PRIMARY KEY (run_id, seq, state)
);

-- The notices that are not announced yet. Usually there are none.
CREATE INDEX notice_open ON engine.notice (run_id, seq, state) WHERE NOT done;
