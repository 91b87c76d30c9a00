-- +goose Up

-- The run that has taken over the results of an ended run (engine restart). A run has one heir at
-- most, so two runs never undo the same effects. The row is written in the transaction that submits
-- the heir. It stays as long as the ended run, even if retention has removed the heir.
CREATE TABLE heir (
  run_id INTEGER PRIMARY KEY, -- the ended run
  heir   INTEGER NOT NULL CHECK (heir <> run_id)
) STRICT;
