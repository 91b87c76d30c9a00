-- +goose Up

-- The types of events that start runs of a published workflow.
ALTER TABLE engine.published ADD COLUMN events text[] NOT NULL DEFAULT '{}';

-- The inbox of events: a row is an event. An engine claims a batch of events until claimed_until,
-- starts their runs, and removes the rows. The column done has the names of the workflows that need
-- the event no more. The column quarantined says why engines do not work on the event; NULL = the
-- event waits.
CREATE TABLE engine.events (
  seq           int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id            text COLLATE "C" NOT NULL UNIQUE DEFAULT pg_catalog.gen_random_uuid()::text
                CONSTRAINT events_id CHECK (id <> '' AND pg_catalog.octet_length(id) <= 200 AND id !~ '[[:cntrl:]]'),
  type          text COLLATE "C" NOT NULL CONSTRAINT events_type CHECK (type ~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$'),
  data          jsonb NOT NULL DEFAULT '{}' CONSTRAINT events_data CHECK (pg_catalog.octet_length(data::text) <= 1048576),
  sent_by       text NOT NULL DEFAULT session_user,
  sent_at       timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  claimed_until timestamptz NOT NULL DEFAULT '-infinity',
  done          text[] NOT NULL DEFAULT '{}',
  quarantined   text
) WITH (fillfactor = 50);
CREATE INDEX events_wait ON engine.events (seq) WHERE quarantined IS NULL;

-- +goose StatementBegin
-- Transactions that use NOTIFY commit one after the other, which is slow. So new events use NOTIFY
-- only if no earlier event waits. An engine that wakes up claims all events that wait.
CREATE FUNCTION engine.events_sent() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM fresh) AND NOT EXISTS (SELECT FROM engine.events WHERE quarantined IS NULL AND seq < (SELECT min(f.seq) FROM fresh f)) THEN
    PERFORM pg_notify('engine_wake', '');
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER events_sent AFTER INSERT ON engine.events REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION engine.events_sent();

-- +goose StatementBegin
-- engine.emit sends an event in the transaction of the caller. If that transaction does not commit,
-- there is no event. The function returns the id of the event. A second event with the same id
-- changes nothing while the first one is in the inbox. The function runs with the rights of its
-- owner, so a caller needs no right on a table.
CREATE FUNCTION engine.emit(type text, data jsonb DEFAULT '{}', id text DEFAULT NULL) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  own text := coalesce(emit.id, gen_random_uuid()::text);
BEGIN
  IF emit.type IS NULL OR emit.type !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$' THEN
    RAISE EXCEPTION 'engine: % cannot be the type of an event', quote_nullable(emit.type)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'A type begins with a letter or a digit, and has at most 200 letters, digits and . _ : / -.';
  END IF;
  IF own = '' OR octet_length(own) > 200 OR own ~ '[[:cntrl:]]' THEN
    RAISE EXCEPTION 'engine: % cannot be the id of an event', quote_literal(left(own, 50))
      USING ERRCODE = 'invalid_parameter_value', HINT = 'An id has 1 to 200 bytes, and no control characters.';
  END IF;
  IF octet_length(coalesce(emit.data, '{}')::text) > 1048576 THEN
    RAISE EXCEPTION 'engine: the data of the event have more than 1 MiB'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Send a reference to the data.';
  END IF;
  INSERT INTO engine.events (id, type, data) VALUES (own, emit.type, coalesce(emit.data, '{}')) ON CONFLICT DO NOTHING;
  RETURN own;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION engine.emit(text, jsonb, text), engine.events_sent() FROM PUBLIC;
