-- +goose Up

-- The types of events that start runs of a published workflow, as a JSON list.
ALTER TABLE published ADD COLUMN events TEXT NOT NULL DEFAULT '[]';

-- The inbox of events. An engine claims a batch of events until claimed_until, in microseconds since
-- 1970, starts their runs, and removes them. The column done has the names of the workflows that need
-- the event no more. The column quarantined says why engines do not work on the event; '' = it waits.
CREATE TABLE event (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  data          TEXT NOT NULL,
  sent_by       TEXT NOT NULL,
  sent_at       INTEGER NOT NULL,
  claimed_until INTEGER NOT NULL DEFAULT 0,
  done          TEXT NOT NULL DEFAULT '',
  quarantined   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX event_waits ON event (seq) WHERE quarantined = '';
