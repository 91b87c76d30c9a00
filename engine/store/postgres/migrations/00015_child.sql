-- +goose Up

-- The parent of a child run: the run that started it. Each child run has a name, so the
-- parent is stored with the name. NULL = the run is no child run. Lists of the child runs of a
-- run use the index. Retention keeps a child run while its parent exists.
ALTER TABLE engine.run_name ADD COLUMN parent int8 CHECK (parent > 0);
CREATE INDEX run_name_parent ON engine.run_name (parent, run_id) WHERE parent IS NOT NULL;
