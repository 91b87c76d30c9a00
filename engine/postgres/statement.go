package postgres

// writerSession prepares a connection for commits. The generic plan assumes
// ten rows per array: a nested loop on the primary key. A custom plan would see
// a long array against a table it believes small, and scan all of it.
const writerSession = `
SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on;
SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET enable_seqscan = off; SET enable_memoize = off; SET jit = off;
SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '5s';
`

// The commit statement, in pieces. Arrays are sorted by run: the order of locks
// everywhere is fence, journal keys ascending, run rows.
const (
	commitOwn = `
WITH own AS MATERIALIZED (
  SELECT 1 FROM engine.fence WHERE engine = $1::int4 AND writer = $2::int2 FOR NO KEY UPDATE
)`
	commitLanded = `, landed AS (
  INSERT INTO engine.journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, steps, data)
  SELECT v.run_id, v.seq, v.at, v.workflow_id, v.run_state, v.owner, v.next_check, $3::int8, v.steps, v.data
  FROM own, unnest($4::int8[], $5::int4[], $6::timestamptz[], $7::int4[], $8::int2[], $9::int4[], $10::timestamptz[], $11::bytea[], $12::bytea[])
       v(run_id, seq, at, workflow_id, run_state, owner, next_check, steps, data)`
	commitOnConflict = `
  ON CONFLICT (run_id, seq) DO NOTHING`
	commitReturning = `
  RETURNING run_id, seq, at, workflow_id, run_state, owner, next_check
)`
	commitCreated = `, created AS (
  INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at, finished_at)
  SELECT run_id, workflow_id, run_state, owner, seq, next_check, at, CASE WHEN run_state >= 10 THEN at END
  FROM landed WHERE seq = 0
)`
	commitChanged = `, changed AS (
  UPDATE engine.run r
  SET state = coalesce(l.run_state, r.state), next_check = coalesce(l.next_check, r.next_check),
      owner = coalesce(l.owner, r.owner), fence = CASE WHEN l.owner IS NULL THEN r.fence ELSE l.seq END,
      finished_at = CASE WHEN l.run_state IS NULL THEN r.finished_at WHEN l.run_state >= 10 THEN l.at END
  FROM landed l
  WHERE l.seq > 0 AND (l.run_state IS NOT NULL OR l.next_check IS NOT NULL OR l.owner IS NOT NULL) AND r.run_id = l.run_id
)`
	commitSide = `, named AS (
  INSERT INTO engine.run_step (run_id, node, step, name)
  SELECT s.run_id, s.node, s.step, s.name
  FROM unnest($13::int8[], $14::int4[], $15::int4[], $16::text[]) s(run_id, node, step, name) JOIN landed l USING (run_id)
), alerted AS (
  INSERT INTO engine.alert (run_id, at, kind, step, code, message)
  SELECT l.run_id, l.at, a.kind, a.step, a.code, a.message
  FROM unnest($17::int8[], $18::int4[], $19::text[], $20::text[], $21::text[], $22::text[]) a(run_id, n, kind, step, code, message) JOIN landed l USING (run_id)
  ORDER BY l.run_id, a.n
)`
	commitConsumed = `, consumed AS (
  DELETE FROM engine.inbox i
  USING unnest($23::int8[], $24::int8[]) c(run_id, id) JOIN landed l USING (run_id)
  WHERE i.id = c.id AND i.run_id = c.run_id
)`
	commitAnswer = `
SELECT o.alive, l.n, CASE WHEN l.n < cardinality($4::int8[]) THEN l.ids END
FROM (SELECT count(*) AS alive FROM own) o, (SELECT count(*) AS n, array_agg(run_id) AS ids FROM landed) l`
)

// The shapes that are prepared: a lone transition should not pay for empty
// branches. The normal form has no ON CONFLICT, which costs more than it is
// worth while nothing conflicts: a conflict is SQLSTATE 23505 and nothing has
// landed.
const (
	journalAppend           = commitOwn + commitLanded + commitReturning + commitChanged + commitAnswer
	journalCreate           = commitOwn + commitLanded + commitReturning + commitCreated + commitChanged + commitAnswer
	journalCreateSide       = commitOwn + commitLanded + commitReturning + commitCreated + commitChanged + commitSide + commitAnswer
	journalAppendIfNone     = commitOwn + commitLanded + commitOnConflict + commitReturning + commitChanged + commitAnswer
	journalCreateIfNone     = commitOwn + commitLanded + commitOnConflict + commitReturning + commitCreated + commitChanged + commitAnswer
	journalCreateSideIfNone = commitOwn + commitLanded + commitOnConflict + commitReturning + commitCreated + commitChanged + commitSide + commitAnswer
	journalConsume          = commitOwn + commitLanded + commitReturning + commitCreated + commitChanged + commitSide + commitConsumed + commitAnswer
	journalConsumeIfNone    = commitOwn + commitLanded + commitOnConflict + commitReturning + commitCreated + commitChanged + commitSide + commitConsumed + commitAnswer
	journalWriters          = `SELECT j.run_id, j.writer FROM unnest($1::int8[], $2::int4[]) v(run_id, seq) JOIN engine.journal j USING (run_id, seq)`
	fenceOpen               = `SELECT EXISTS (SELECT FROM engine.fence WHERE engine = $1 AND writer = $2)`
	runNameClaim            = `
WITH claimed AS (INSERT INTO engine.run_name (run_id, name, key) VALUES ($1::int8, $2::text, nullif($3::text, '')) ON CONFLICT DO NOTHING RETURNING 1)
SELECT EXISTS (SELECT FROM claimed), EXISTS (SELECT FROM engine.workflow WHERE workflow_id = $4::int4)`
	runNameHolder = `SELECT run_id, name FROM engine.run_name WHERE name = $1`
	contextClaim  = `
INSERT INTO engine.context AS c (workflow, key, run_id) VALUES ($1, $2, $3)
ON CONFLICT (workflow, key) DO UPDATE SET run_id = c.run_id RETURNING run_id`
	contextHolder  = `SELECT r.state, n.name FROM engine.run r JOIN engine.run_name n USING (run_id) WHERE r.run_id = $1`
	contextReplace = `UPDATE engine.context SET run_id = $3 WHERE workflow = $1 AND key = $2`
)
