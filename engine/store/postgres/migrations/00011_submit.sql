-- +goose Up

-- The variables of a published workflow, with which engine.submit checks the input: a list of
-- objects with name, type (as cty writes it in JSON), required, nullable and sensitive.
ALTER TABLE engine.published ADD COLUMN variables jsonb NOT NULL DEFAULT '[]';

-- Submissions of other programs. An engine starts a run for each submission and removes the row. If
-- the engine refuses the submission, it writes the reason into the column refused.
CREATE TABLE engine.submission (
  submission_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run           text COLLATE "C" NOT NULL UNIQUE,
  workflow      text COLLATE "C" NOT NULL,
  input         jsonb NOT NULL,
  submitted_by  text NOT NULL,
  submitted_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  refused       text
) WITH (fillfactor = 50);
CREATE INDEX submission_waits ON engine.submission (submission_id) WHERE refused IS NULL;

CREATE VIEW engine.submissions AS
SELECT run, workflow, submitted_by, submitted_at, CASE WHEN refused IS NULL THEN 'waits' ELSE 'refused' END AS status, refused
FROM engine.submission;

-- +goose StatementBegin
-- engine.misfit returns the reason why a JSON value does not have the given type; NULL = the value
-- has the type. The type is written as cty writes it: "string", ["list", T], ["map", T],
-- ["object", {name: T}, [optional names]], ["tuple", [T]].
CREATE FUNCTION engine.misfit(v jsonb, t jsonb, place text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind text := CASE WHEN jsonb_typeof(t) = 'array' THEN t->>0 ELSE t #>> '{}' END;
  have text := jsonb_typeof(v);
  name text;
  item jsonb;
  why  text;
  i    int := 0;
BEGIN
  IF v IS NULL OR have = 'null' OR kind = 'dynamic' THEN
    RETURN NULL; -- engine.submit checks whether the variable may be null
  END IF;
  CASE kind
  WHEN 'string', 'number', 'bool' THEN
    IF have <> (CASE kind WHEN 'bool' THEN 'boolean' ELSE kind END) THEN
      RETURN format('%s must be a %s, and is a JSON %s', place, kind, have);
    END IF;
  WHEN 'list', 'set', 'tuple' THEN
    IF have <> 'array' THEN
      RETURN format('%s must be an array, and is a JSON %s', place, have);
    END IF;
    IF kind = 'tuple' AND jsonb_array_length(v) <> jsonb_array_length(t->1) THEN
      RETURN format('%s must have %s elements, and has %s', place, jsonb_array_length(t->1), jsonb_array_length(v));
    END IF;
    FOR item IN SELECT e FROM jsonb_array_elements(v) e LOOP
      why := engine.misfit(item, CASE kind WHEN 'tuple' THEN t->1->i ELSE t->1 END, format('%s[%s]', place, i));
      IF why IS NOT NULL THEN RETURN why; END IF;
      i := i + 1;
    END LOOP;
  WHEN 'map' THEN
    IF have <> 'object' THEN
      RETURN format('%s must be an object, and is a JSON %s', place, have);
    END IF;
    FOR name, item IN SELECT e.key, e.value FROM jsonb_each(v) e LOOP
      why := engine.misfit(item, t->1, format('%s.%s', place, name));
      IF why IS NOT NULL THEN RETURN why; END IF;
    END LOOP;
  WHEN 'object' THEN
    IF have <> 'object' THEN
      RETURN format('%s must be an object, and is a JSON %s', place, have);
    END IF;
    FOR name, item IN SELECT e.key, e.value FROM jsonb_each(t->1) e LOOP
      IF NOT v ? name AND NOT coalesce(t->2 ? name, false) THEN
        RETURN format('%s.%s is missing', place, name);
      END IF;
      why := engine.misfit(v->name, item, format('%s.%s', place, name));
      IF why IS NOT NULL THEN RETURN why; END IF;
    END LOOP;
  ELSE
    RETURN format('%s has the unknown type %s', place, kind);
  END CASE;
  RETURN NULL;
END $$;

-- engine.submit submits a run in the transaction of the caller. If that transaction does not
-- commit, there is no submission. The function returns the public id of the run. A second
-- submission with the same id changes nothing. But if an engine has refused the first one, the
-- second one replaces its workflow and input, and waits again. The function runs with the rights of
-- its owner, so a caller needs no right on a table.
CREATE FUNCTION engine.submit(workflow text, input jsonb DEFAULT '{}', run text DEFAULT NULL) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  wants jsonb;
  have  jsonb := coalesce(submit.input, '{}');
  id    text  := coalesce(submit.run, 's-' || gen_random_uuid());
  x     record;
  why   text;
BEGIN
  SELECT p.variables INTO wants FROM engine.published p WHERE p.workflow = submit.workflow;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'engine: no workflow % is published', quote_ident(submit.workflow)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Publish its definition: engine publish PATH';
  END IF;
  IF id !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$' OR id ~ '^r-[1-9a-z][0-9a-z]*$' THEN
    RAISE EXCEPTION 'engine: % cannot be the id of a run', quote_literal(id)
      USING ERRCODE = 'invalid_parameter_value',
      HINT = 'An id begins with a letter or digit, and has at most 100 letters, digits and . _ : / -. Ids that begin with r- are made by engines.';
  END IF;
  IF jsonb_typeof(have) <> 'object' THEN
    RAISE EXCEPTION 'engine: input is a JSON %, and must be an object with the values of variables', jsonb_typeof(have)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR x IN SELECT k FROM jsonb_object_keys(have) k WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(wants) w WHERE w->>'name' = k) LOOP
    RAISE EXCEPTION 'engine: workflow % has no variable %', quote_ident(submit.workflow), quote_ident(x.k)
      USING ERRCODE = 'invalid_parameter_value';
  END LOOP;
  FOR x IN SELECT w->>'name' AS name, w->'type' AS type, (w->>'required')::bool AS required, (w->>'nullable')::bool AS nullable, (w->>'sensitive')::bool AS sensitive
    FROM jsonb_array_elements(wants) w LOOP
    IF NOT have ? x.name THEN
      IF x.required THEN
        RAISE EXCEPTION 'engine: workflow % needs a value for variable %', quote_ident(submit.workflow), quote_ident(x.name)
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      CONTINUE;
    END IF;
    IF x.sensitive THEN
      RAISE EXCEPTION 'engine: variable % is sensitive, and engine.submit stores its input in clear', quote_ident(x.name)
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass a reference to the secret, or submit the run with engine apply --detach.';
    END IF;
    why := CASE WHEN have->x.name = 'null' AND x.required AND NOT x.nullable THEN quote_ident(x.name) || ' must not be null'
      ELSE engine.misfit(have->x.name, x.type, quote_ident(x.name)) END;
    IF why IS NOT NULL THEN
      RAISE EXCEPTION 'engine: input of workflow %: %', quote_ident(submit.workflow), why USING ERRCODE = 'invalid_parameter_value';
    END IF;
  END LOOP;
  INSERT INTO engine.submission AS s (run, workflow, input, submitted_by) VALUES (id, submit.workflow, have, session_user)
  ON CONFLICT (run) DO UPDATE SET workflow = excluded.workflow, input = excluded.input,
    submitted_by = excluded.submitted_by, submitted_at = excluded.submitted_at, refused = NULL WHERE s.refused IS NOT NULL;
  -- Transactions that use NOTIFY commit one after the other, which is slow. So a submission uses
  -- NOTIFY only if no other submission waits. An engine that wakes up reads all submissions that
  -- wait.
  IF NOT EXISTS (SELECT FROM engine.submission s WHERE s.refused IS NULL AND s.run <> id) THEN
    PERFORM pg_notify('engine_wake', '');
  END IF;
  RETURN id;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION engine.submit(text, jsonb, text), engine.misfit(jsonb, jsonb, text) FROM PUBLIC;
