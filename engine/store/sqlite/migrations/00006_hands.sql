-- +goose Up

-- The runs that an engine has in hand: it is about to read or to decide them, and
-- cannot be sure that it outlives that.
CREATE TABLE hand (
  engine INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  PRIMARY KEY (engine, run_id)
) STRICT, WITHOUT ROWID;

-- Open runs that engines had in hand when they were declared dead, with how many
-- did. A run that gets on is not here.
CREATE TABLE suspect (
  run_id INTEGER PRIMARY KEY,
  deaths INTEGER NOT NULL CHECK (deaths > 0)
) STRICT;
