-- +goose Up

-- How long runs of this workflow are kept after their end, in microseconds;
-- NULL = the option --retention of the engine that removes runs decides.
ALTER TABLE workflow ADD COLUMN retention INTEGER CHECK (retention > 0);
CREATE INDEX workflow_retention ON workflow (retention) WHERE retention IS NOT NULL;
