-- +goose Up

-- The run that started a child run. Only child runs have a parent, and each of them
-- has a name, so the parent is kept with the name. Lists of the children of a run use
-- the index. Retention keeps a run while its parent exists.
ALTER TABLE engine.run_name ADD COLUMN parent int8 CHECK (parent > 0);
CREATE INDEX run_name_parent ON engine.run_name (parent, run_id) WHERE parent IS NOT NULL;
