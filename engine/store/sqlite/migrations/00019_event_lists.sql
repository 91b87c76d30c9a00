-- +goose Up

-- An event can start a run for each key of a list. The column lists says for each workflow how far
-- engines have come, as a JSON list. Each change of it increases the version.
ALTER TABLE event ADD COLUMN lists TEXT NOT NULL DEFAULT '[]';
ALTER TABLE event ADD COLUMN version INTEGER NOT NULL DEFAULT 0;

-- The keys of events that could start no run, with the reason. A key waits after a person has retried
-- its event.
CREATE TABLE event_key (
  seq      INTEGER NOT NULL REFERENCES event ON DELETE CASCADE,
  workflow TEXT NOT NULL,
  key      TEXT NOT NULL,
  error    TEXT NOT NULL,
  waits    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (seq, workflow, key)
) STRICT, WITHOUT ROWID;
