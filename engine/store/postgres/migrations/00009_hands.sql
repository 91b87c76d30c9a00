-- +goose Up

-- The runs that an engine has in hand: it is about to read or to decide them, and
-- cannot be sure that it outlives that. Replaced as a whole, before a run is touched.
CREATE TABLE engine.hand (
  engine int4 PRIMARY KEY,
  runs   int8[] NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_cost_delay = 0);

-- Open runs that engines had in hand when they were declared dead, with how many
-- did. A run that gets on is not here.
CREATE TABLE engine.suspect (
  run_id int8 PRIMARY KEY,
  deaths int4 NOT NULL CHECK (deaths > 0)
);
