-- +goose Up

-- The states of runs that notify blocks announce, each with the number of the row of the
-- journal with which the run reached it. The row of the journal and the notice are one
-- commit.
CREATE TABLE engine.notice (
  run_id int8 NOT NULL,
  seq    int4 NOT NULL,
  state  text NOT NULL,
  done   boolean NOT NULL DEFAULT false,
  PRIMARY KEY (run_id, seq, state)
);

-- What has not been announced yet: usually nothing.
CREATE INDEX notice_open ON engine.notice (run_id, seq, state) WHERE NOT done;
