-- +goose Up

-- What else a submission says: the time by which the first step of the run must begin, and the
-- priority of the run; NULL = it does not say it.
ALTER TABLE engine.submission ADD COLUMN start_by timestamptz, ADD COLUMN priority int4;

-- When an engine refused a submission; NULL = it did not, or an engine of an earlier version did.
ALTER TABLE engine.submission ADD COLUMN refused_at timestamptz;
CREATE INDEX submission_refused ON engine.submission (coalesce(refused_at, submitted_at)) WHERE refused IS NOT NULL;

CREATE OR REPLACE VIEW engine.submissions AS
SELECT run, workflow, submitted_by, submitted_at, CASE WHEN refused IS NULL THEN 'waits' ELSE 'refused' END AS status, refused,
  CASE WHEN refused IS NOT NULL THEN coalesce(refused_at, submitted_at) END AS refused_at
FROM engine.submission;

-- The agent actions to which replies of the runs can go, such as agent:shop.told; NULL = an engine
-- of an earlier version has published the workflow.
ALTER TABLE engine.published ADD COLUMN sinks text[];

-- The variable whose value is the unique key of a run; NULL = the key is another expression, or there is
-- none, or an engine of an earlier version has published the workflow.
ALTER TABLE engine.published ADD COLUMN unique_variable text;

-- +goose StatementBegin
-- engine.submit submits a run in the transaction of the caller. If that transaction does not commit,
-- there is no submission. The function returns the public id of the run. A second submission with the
-- same id, workflow and input changes nothing. But if an engine has refused the first one, the second
-- one replaces it, and waits again. It is an error if a submission that waits has another workflow or
-- another input, or if a run of another workflow has the id. The function runs with the rights of its
-- owner, so a caller needs no right on a table.
--   run          id of the run; NULL = the database makes one
--   reply_to     where the replies of the run go, such as table:orders; NULL = the run has none
--   correlation  text that each reply repeats
--   start_by     the run fails, and does nothing, if no step of it has begun by then
--   priority     0 to 100, higher first; NULL = as the workflow says
CREATE FUNCTION engine.submit(workflow text, input jsonb DEFAULT '{}', run text DEFAULT NULL, reply_to text DEFAULT NULL, correlation text DEFAULT NULL,
  start_by timestamptz DEFAULT NULL, priority int DEFAULT NULL) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  wants jsonb;
  known text[];
  key   text;
  have  jsonb := coalesce(submit.input, '{}');
  id    text  := coalesce(submit.run, 's-' || gen_random_uuid());
  x     record;
  why   text;
BEGIN
  SELECT p.variables, p.sinks, submit.input->>p.unique_variable INTO wants, known, key FROM engine.published p WHERE p.workflow = submit.workflow;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'engine: no workflow % is published', quote_ident(submit.workflow)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Publish its definition: engine publish PATH';
  END IF;
  IF id !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$' OR id ~ '^r-[1-9a-z][0-9a-z]*$' THEN
    RAISE EXCEPTION 'engine: % cannot be the id of a run', quote_literal(id)
      USING ERRCODE = 'invalid_parameter_value',
      HINT = 'An id begins with a letter or digit, and has at most 100 letters, digits and . _ : / -. Ids that begin with r- are made by engines.';
  END IF;
  SELECT w.name INTO x FROM engine.run_name n JOIN engine.run r USING (run_id) JOIN engine.workflow w USING (workflow_id)
    WHERE n.name = id AND w.name <> submit.workflow;
  IF FOUND THEN
    RAISE EXCEPTION 'engine: run % exists already, and is a run of workflow %', quote_literal(id), quote_ident(x.name)
      USING ERRCODE = 'unique_violation', HINT = 'Submit with another id.';
  END IF;
  IF octet_length(submit.reply_to) > 500
    OR submit.reply_to !~ '^(table:[A-Za-z0-9._-]{1,100}|webhook:([A-Za-z0-9._-]{1,100}|https?://[^[:space:]]+)|agent:[A-Za-z0-9_.-]+[.][A-Za-z0-9_-]+)$' THEN
    RAISE EXCEPTION 'engine: % is no reply sink', quote_literal(submit.reply_to)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Write table:QUEUE, webhook:NAME, webhook:https://HOST/PATH or agent:NAME.ACTION.';
  END IF;
  IF submit.reply_to LIKE 'agent:%' AND submit.reply_to <> ALL (known) THEN
    RAISE EXCEPTION 'engine: workflow % has no agent action % that takes replies', quote_ident(submit.workflow), quote_literal(substr(submit.reply_to, 7))
      USING ERRCODE = 'invalid_parameter_value', HINT = CASE cardinality(known) WHEN 0 THEN 'No action of its agents takes replies: such an action has the arguments run, seq and status.'
        ELSE 'These take replies: ' || array_to_string(known, ', ') || '.' END;
  END IF;
  IF octet_length(submit.correlation) > 200 OR submit.correlation IS NOT NULL AND submit.reply_to IS NULL THEN
    RAISE EXCEPTION 'engine: a correlation id has at most 200 bytes, and needs a reply sink' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF submit.priority NOT BETWEEN 0 AND 100 THEN
    RAISE EXCEPTION 'engine: priority is from 0 to 100, not %', submit.priority USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF submit.start_by NOT BETWEEN '2000-01-01Z' AND '9999-12-31Z' THEN
    RAISE EXCEPTION 'engine: start_by is a time from the year 2000 to the year 9999, not %', submit.start_by USING ERRCODE = 'invalid_parameter_value';
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
  why := CASE WHEN key = '' THEN 'must not be empty'
    WHEN octet_length(key) > 1024 THEN format('has %s bytes, more than the 1024 allowed', octet_length(key))
    WHEN key ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'must not have control characters' END;
  IF why IS NOT NULL THEN
    RAISE EXCEPTION 'engine: the unique key of workflow % %', quote_ident(submit.workflow), why USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO engine.submission AS s (run, workflow, input, submitted_by, reply_to, correlation, start_by, priority)
  VALUES (id, submit.workflow, have, session_user, submit.reply_to, submit.correlation, submit.start_by, submit.priority)
  ON CONFLICT (run) DO UPDATE SET workflow = excluded.workflow, input = excluded.input, submitted_by = excluded.submitted_by, submitted_at = excluded.submitted_at,
    reply_to = excluded.reply_to, correlation = excluded.correlation, start_by = excluded.start_by, priority = excluded.priority, refused = NULL, refused_at = NULL
  WHERE s.refused IS NOT NULL;
  IF NOT FOUND THEN -- a submission with this id waits; the statement has locked it
    SELECT s.workflow, s.input INTO x FROM engine.submission s WHERE s.run = id;
    IF x.workflow <> submit.workflow THEN
      RAISE EXCEPTION 'engine: submission % waits already, for workflow %', quote_literal(id), quote_ident(x.workflow)
        USING ERRCODE = 'unique_violation', HINT = 'Submit with another id.';
    ELSIF x.input <> have THEN
      RAISE EXCEPTION 'engine: submission % waits already, with another input', quote_literal(id)
        USING ERRCODE = 'unique_violation', HINT = 'To submit the same run again, pass the same input. To submit another run, pass another id.';
    END IF;
  END IF;
  -- Transactions that use NOTIFY commit one after the other, which is slow. So a submission uses
  -- NOTIFY only if no other submission waits. An engine that wakes up reads all submissions that
  -- wait.
  IF NOT EXISTS (SELECT FROM engine.submission s WHERE s.refused IS NULL AND s.run <> id) THEN
    PERFORM pg_notify('engine_wake', '');
  END IF;
  RETURN id;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION engine.submit(text, jsonb, text, text, text, timestamptz, int) FROM PUBLIC;

-- The new function replaces both older ones: each call that fitted one of them fits it. A role that
-- may execute one of them may execute the new one.
-- +goose StatementBegin
DO $$
DECLARE
  x record;
BEGIN
  FOR x IN
    SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) END AS who
    FROM pg_catalog.pg_proc p, LATERAL pg_catalog.aclexplode(p.proacl) g
    WHERE p.oid IN ('engine.submit(text, jsonb, text)'::regprocedure, 'engine.submit(text, jsonb, text, text, text)'::regprocedure)
      AND g.privilege_type = 'EXECUTE' AND g.grantee <> p.proowner
  LOOP
    EXECUTE 'GRANT EXECUTE ON FUNCTION engine.submit(text, jsonb, text, text, text, timestamptz, int) TO ' || x.who;
  END LOOP;
END $$;
-- +goose StatementEnd
DROP FUNCTION engine.submit(text, jsonb, text), engine.submit(text, jsonb, text, text, text);
