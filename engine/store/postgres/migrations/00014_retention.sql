-- +goose Up

-- How long runs of this workflow are kept after their end, in microseconds;
-- NULL = as long as the engine says that removes runs.
ALTER TABLE engine.workflow ADD COLUMN retention int8 CHECK (retention > 0);
CREATE INDEX workflow_retention ON engine.workflow (retention) WHERE retention IS NOT NULL;
