-- +goose Up

-- How long runs of this workflow are kept after their end, in microseconds;
-- NULL = as long as the engine says that removes runs.
ALTER TABLE workflow ADD COLUMN retention INTEGER CHECK (retention > 0);
CREATE INDEX workflow_retention ON workflow (retention) WHERE retention IS NOT NULL;
