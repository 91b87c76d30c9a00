-- +goose Up

-- How long runs of this workflow are kept after their end, in microseconds;
-- NULL = the option --retention of the engine that removes runs decides.
ALTER TABLE engine.workflow ADD COLUMN retention int8 CHECK (retention > 0);
CREATE INDEX workflow_retention ON engine.workflow (retention) WHERE retention IS NOT NULL;
