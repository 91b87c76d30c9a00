-- +goose Up

-- +goose StatementBegin
-- engine.rule_match reports whether a text matches a pattern. The result NULL means that the server does
-- not accept the pattern.
CREATE FUNCTION engine.rule_match(x text, pattern text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN to_jsonb(x ~ pattern);
EXCEPTION WHEN invalid_regular_expression THEN
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- engine.rule returns the value of a rule for an input. A rule is a part of the condition of a
-- validation block; package dsl/internal/rule describes the operations. The result NULL means that only
-- an engine can evaluate this: a part of the input is missing or null, a text has characters outside of
-- ASCII, a number has many digits, or a newer engine has published the rule. The function has no
-- search_path of its own, because setting one takes longer than the rest. engine.submit sets it.
CREATE FUNCTION engine.rule(r jsonb, input jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  op   text := r->>0;
  a    jsonb;
  b    jsonb;
  kind text;
  x    text;
BEGIN
  IF op = 'is' THEN
    RETURN r->1;
  ELSIF op = 'input' THEN
    a := input #> (r->>1)::text[];
    kind := jsonb_typeof(a);
    x := a #>> '{}';
    RETURN CASE WHEN kind = 'null' OR kind = 'string' AND x ~ '[^\u0020-\u007e]' OR kind = 'number' AND length(x) > 100 THEN NULL ELSE a END;
  ELSIF op IN ('in', 'match') THEN
    a := engine.rule(r->2, input);
  ELSE
    a := engine.rule(r->1, input);
  END IF;
  IF op IN ('and', 'or', 'eq', 'lt', 'le', 'gt', 'ge', 'starts', 'ends') THEN
    b := engine.rule(r->2, input);
    IF b IS NULL OR jsonb_typeof(a) <> jsonb_typeof(b) THEN
      RETURN NULL;
    END IF;
  END IF;
  IF a IS NULL THEN
    RETURN NULL;
  END IF;
  x := a #>> '{}';
  CASE op
  WHEN 'and' THEN RETURN CASE WHEN a = 'true' THEN b ELSE a END;
  WHEN 'or' THEN RETURN CASE WHEN a = 'true' THEN a ELSE b END;
  WHEN 'not' THEN RETURN CASE WHEN a = 'true' THEN 'false' ELSE 'true' END;
  WHEN 'null' THEN RETURN 'false';
  WHEN 'eq' THEN RETURN to_jsonb(a = b);
  WHEN 'lt' THEN RETURN to_jsonb(a < b);
  WHEN 'le' THEN RETURN to_jsonb(a <= b);
  WHEN 'gt' THEN RETURN to_jsonb(a > b);
  WHEN 'ge' THEN RETURN to_jsonb(a >= b);
  WHEN 'length' THEN
    CASE jsonb_typeof(a)
    WHEN 'string' THEN RETURN to_jsonb(length(x));
    WHEN 'array' THEN RETURN to_jsonb(jsonb_array_length(a));
    WHEN 'object' THEN RETURN to_jsonb((SELECT count(*) FROM jsonb_object_keys(a)));
    ELSE RETURN NULL;
    END CASE;
  WHEN 'trim' THEN RETURN to_jsonb(btrim(x));
  WHEN 'starts' THEN RETURN to_jsonb(starts_with(x, b #>> '{}'));
  WHEN 'ends' THEN RETURN to_jsonb(right(x, length(b #>> '{}')) = b #>> '{}');
  WHEN 'in' THEN RETURN to_jsonb(r->1 @> a);
  WHEN 'match' THEN RETURN engine.rule_match(x, r->>1);
  ELSE RETURN NULL;
  END CASE;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- engine.submit does the same as before, with three changes. It checks the rules of the variables, see
-- engine.rule. A submission that replaces a refused one gets a new submission_id, so an engine that still
-- has the refused one can neither refuse nor remove it, and it comes last in its order. And a submission
-- that has waited for a second no longer keeps later ones from using NOTIFY: it may wait for a key for days.
CREATE OR REPLACE FUNCTION engine.submit(workflow text, input jsonb DEFAULT '{}', run text DEFAULT NULL, reply_to text DEFAULT NULL, correlation text DEFAULT NULL,
  start_by timestamptz DEFAULT NULL, priority int DEFAULT NULL) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  wants jsonb;
  known text[];
  key   text;
  have  jsonb := coalesce(submit.input, '{}');
  id    text  := coalesce(submit.run, 's-' || gen_random_uuid());
  rest  jsonb := have; -- the values whose variables the loop below has not seen yet
  item  jsonb;
  rule  jsonb;
  name  text;
  x     record;
  why   text;
BEGIN
  SELECT p.variables, p.sinks, submit.input->>p.unique_variable INTO wants, known, key FROM engine.published p WHERE p.workflow = submit.workflow;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'engine: no workflow % is published', quote_ident(submit.workflow)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Publish its definition: engine publish PATH';
  END IF;
  IF id !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$' OR left(id, 2) = 'r-' AND id ~ '^r-[1-9a-z][0-9a-z]*$' THEN
    RAISE EXCEPTION 'engine: % cannot be the id of a run', quote_literal(id)
      USING ERRCODE = 'invalid_parameter_value',
      HINT = 'An id begins with a letter or digit, and has at most 100 letters, digits and . _ : / -. Ids that begin with r- are made by engines.';
  END IF;
  PERFORM FROM engine.run_name n WHERE n.name = id;
  IF FOUND THEN
    SELECT w.name INTO x FROM engine.run_name n JOIN engine.run r USING (run_id) JOIN engine.workflow w USING (workflow_id)
      WHERE n.name = id AND w.name <> submit.workflow;
    IF FOUND THEN
      RAISE EXCEPTION 'engine: run % exists already, and is a run of workflow %', quote_literal(id), quote_ident(x.name)
        USING ERRCODE = 'unique_violation', HINT = 'Submit with another id.';
    END IF;
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
  -- The loop has only simple expressions, for which PL/pgSQL runs no query. So a submission needs less
  -- time, which counts in a transaction with many of them.
  FOR i IN 0 .. jsonb_array_length(wants) - 1 LOOP
    item := wants->i;
    name := item->>'name';
    IF NOT have ? name THEN
      IF (item->>'required')::bool THEN
        RAISE EXCEPTION 'engine: workflow % needs a value for variable %', quote_ident(submit.workflow), quote_ident(name)
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      CONTINUE;
    END IF;
    rest := rest - name;
    IF (item->>'sensitive')::bool THEN
      RAISE EXCEPTION 'engine: variable % is sensitive, and engine.submit stores its input in clear', quote_ident(name)
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass a reference to the secret, or submit the run with engine apply --detach.';
    END IF;
    CONTINUE WHEN jsonb_typeof(have->name) = item->>'type'; -- a text or a number, as it has to be
    why := CASE WHEN have->name = 'null' AND (item->>'required')::bool AND NOT (item->>'nullable')::bool THEN quote_ident(name) || ' must not be null'
      ELSE engine.misfit(have->name, item->'type', quote_ident(name)) END;
    IF why IS NOT NULL THEN
      RAISE EXCEPTION 'engine: input of workflow %: %', quote_ident(submit.workflow), why USING ERRCODE = 'invalid_parameter_value';
    END IF;
  END LOOP;
  IF rest <> '{}' THEN
    RAISE EXCEPTION 'engine: workflow % has no variable %', quote_ident(submit.workflow), quote_ident((SELECT min(k) FROM jsonb_object_keys(rest) k))
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR i IN 0 .. jsonb_array_length(wants) - 1 LOOP
    item := wants->i;
    CONTINUE WHEN NOT item ? 'rules';
    FOR k IN 0 .. jsonb_array_length(item->'rules') - 1 LOOP
      rule := item->'rules'->k;
      IF engine.rule(rule->'check', have) = 'false' THEN
        RAISE EXCEPTION 'engine: input of workflow %: invalid value for variable %: %', quote_ident(submit.workflow), quote_ident(item->>'name'), rule->>'message'
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
    END LOOP;
  END LOOP;
  why := CASE WHEN key = '' THEN 'must not be empty'
    WHEN octet_length(key) > 1024 THEN format('has %s bytes, more than the 1024 allowed', octet_length(key))
    WHEN key ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'must not have control characters' END;
  IF why IS NOT NULL THEN
    RAISE EXCEPTION 'engine: the unique key of workflow % %', quote_ident(submit.workflow), why USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO engine.submission AS s (run, workflow, input, submitted_by, reply_to, correlation, start_by, priority)
  VALUES (id, submit.workflow, have, session_user, submit.reply_to, submit.correlation, submit.start_by, submit.priority)
  ON CONFLICT (run) DO UPDATE SET submission_id = DEFAULT, workflow = excluded.workflow, input = excluded.input, submitted_by = excluded.submitted_by, submitted_at = excluded.submitted_at,
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
  -- NOTIFY only if no other one was made within the last second and still waits. An engine that wakes up
  -- reads all submissions that wait. The first submission of a transaction decides this for the whole
  -- transaction. If a savepoint takes it back, the setting is taken back, too.
  IF current_setting('engine.submitted', true) IS DISTINCT FROM 'yes' THEN
    IF (SELECT s.submitted_at FROM engine.submission s WHERE s.refused IS NULL AND s.run <> id ORDER BY s.submission_id DESC LIMIT 1) > clock_timestamp() - interval '1 second' IS NOT TRUE THEN
      PERFORM pg_notify('engine_wake', '');
    END IF;
    PERFORM set_config('engine.submitted', 'yes', true);
  END IF;
  RETURN id;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Transactions that use NOTIFY commit one after the other, which is slow. So new events use NOTIFY only
-- if no earlier event was sent within the last second and still waits. An engine that wakes up claims all
-- events that wait.
CREATE OR REPLACE FUNCTION engine.events_sent() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM fresh) AND (SELECT e.sent_at FROM engine.events e WHERE e.quarantined IS NULL AND e.seq < (SELECT min(f.seq) FROM fresh f)
    ORDER BY e.seq DESC LIMIT 1) > clock_timestamp() - interval '1 second' IS NOT TRUE THEN
    PERFORM pg_notify('engine_wake', '');
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
