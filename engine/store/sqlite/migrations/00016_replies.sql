-- +goose Up

-- The outbox: the replies of runs. The column n numbers the replies of a run from 1, without gaps. A
-- reply is written in the same commit as the journal row that causes it. The column done is true if
-- the reply was delivered. No engine claims a reply before the time in the column due.
CREATE TABLE reply (
  run_id      INTEGER NOT NULL,
  n           INTEGER NOT NULL CHECK (n > 0),
  sink        TEXT NOT NULL CHECK (sink <> ''),
  correlation TEXT NOT NULL,
  state       TEXT NOT NULL,
  at          INTEGER NOT NULL, -- microseconds since 1970
  due         INTEGER NOT NULL DEFAULT 0, -- microseconds since 1970
  tries       INTEGER NOT NULL DEFAULT 0,
  why         TEXT NOT NULL DEFAULT '', -- why the last try failed
  done        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;

-- The replies that wait. Usually there are few.
CREATE INDEX reply_open ON reply (sink, due, run_id, n) WHERE done = 0;
