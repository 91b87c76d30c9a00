-- +goose Up

-- The outbox: the replies of runs. The column n numbers the replies of a run from 1, without gaps. A
-- reply is written in the same commit as the journal row that causes it. The column done is true if
-- the reply was delivered. No engine claims a reply before the time in the column due.
CREATE TABLE engine.reply (
  run_id      int8 NOT NULL,
  n           int4 NOT NULL CHECK (n > 0),
  sink        text COLLATE "C" NOT NULL CHECK (sink <> ''),
  correlation text NOT NULL,
  state       text NOT NULL,
  at          timestamptz NOT NULL,
  due         timestamptz NOT NULL DEFAULT '-infinity',
  tries       int4 NOT NULL DEFAULT 0,
  why         text NOT NULL DEFAULT '', -- why the last try failed
  done        boolean NOT NULL DEFAULT false,
  PRIMARY KEY (run_id, n)
) WITH (fillfactor = 80);

-- The replies that wait. Usually there are few.
CREATE INDEX reply_open ON engine.reply (sink, due, run_id, n) WHERE NOT done;

-- The replies for people and for SQL of your own.
CREATE VIEW engine.replies AS
SELECT p.sink, coalesce(n.name, engine.run_public(p.run_id)) AS run, w.name AS workflow, n.key, p.correlation, p.n AS seq, p.state AS status, p.at, p.done, p.tries, p.why
FROM engine.reply p JOIN engine.run r USING (run_id) JOIN engine.workflow w USING (workflow_id) LEFT JOIN engine.run_name n USING (run_id);

-- Where the replies of the run of a submission go; NULL = the run has none.
ALTER TABLE engine.submission ADD COLUMN reply_to text, ADD COLUMN correlation text;

-- +goose StatementBegin
-- engine.take_replies takes replies out of a queue, in the transaction of the caller. If that
-- transaction does not commit, the replies stay in the queue. Each call returns the next reply of each
-- run, and at most as many replies as the argument most says. Several consumers can call it at the
-- same time: each reply goes to one of them, and the replies of a run keep their order. The function
-- runs with the rights of its owner, so a consumer needs no right on a table.
CREATE FUNCTION engine.take_replies(queue text, most int DEFAULT 100)
RETURNS TABLE (run text, workflow text, key text, correlation text, seq int, status text, at timestamptz) LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
WITH next AS MATERIALIZED (
  SELECT r.run_id, r.n FROM engine.reply r
  WHERE r.sink = 'table:' || take_replies.queue AND NOT r.done
    AND (r.n = 1 OR NOT EXISTS (SELECT FROM engine.reply p WHERE p.run_id = r.run_id AND p.n = r.n - 1 AND NOT p.done))
  ORDER BY r.due, r.run_id, r.n LIMIT take_replies.most FOR UPDATE OF r SKIP LOCKED
), taken AS (
  UPDATE engine.reply r SET done = true FROM next WHERE r.run_id = ANY (ARRAY[next.run_id]) AND r.n = next.n
  RETURNING r.run_id, r.n, r.correlation, r.state, r.at
)
SELECT coalesce(m.name, engine.run_public(t.run_id)), w.name, coalesce(m.key, ''), t.correlation, t.n, t.state, t.at
FROM taken t JOIN engine.run u USING (run_id) JOIN engine.workflow w USING (workflow_id) LEFT JOIN engine.run_name m USING (run_id)
ORDER BY t.run_id, t.n
$$;

-- This engine.submit also says where the replies of the run go: reply_to is such as table:orders, and
-- each reply repeats the text in correlation. An engine refuses the submission if it does not know the
-- sink. A second submission with the same id keeps the sink of the first one.
CREATE FUNCTION engine.submit(workflow text, input jsonb, run text, reply_to text, correlation text DEFAULT NULL) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  id text;
BEGIN
  IF octet_length(submit.reply_to) > 500 OR submit.reply_to !~ '^(table:[A-Za-z0-9._-]{1,100}|webhook:([A-Za-z0-9._-]{1,100}|https?://[^[:space:]]+))$' THEN
    RAISE EXCEPTION 'engine: % is no reply sink', quote_literal(submit.reply_to)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Write table:QUEUE, webhook:NAME or webhook:https://HOST/PATH.';
  END IF;
  IF octet_length(submit.correlation) > 200 OR submit.correlation IS NOT NULL AND submit.reply_to IS NULL THEN
    RAISE EXCEPTION 'engine: a correlation id has at most 200 bytes, and needs a reply sink' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- A refused submission that is made again has no sink of its own.
  UPDATE engine.submission s SET reply_to = NULL, correlation = NULL WHERE s.run = submit.run AND s.refused IS NOT NULL;
  id := engine.submit(workflow => submit.workflow, input => submit.input, run => submit.run);
  UPDATE engine.submission s SET reply_to = submit.reply_to, correlation = submit.correlation
  WHERE s.run = id AND s.reply_to IS NULL AND submit.reply_to IS NOT NULL;
  RETURN id;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION engine.take_replies(text, int), engine.submit(text, jsonb, text, text, text) FROM PUBLIC;
