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

// The commit statement, in pieces. Arrays are sorted: journal rows by run, names
// by name, keys by workflow and key. The order of locks everywhere is fence,
// names, keys, journal rows by run, run rows; the counts make each piece wait
// for the one before it.
const (
	commitOwn = `
WITH own AS MATERIALIZED (
  SELECT 1 FROM engine.fence WHERE engine = $1::int4 AND writer = $2::int2 FOR NO KEY UPDATE
)`
	commitInto = `
  INSERT INTO engine.journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, steps, data)
  SELECT v.run_id, v.seq, v.at, v.workflow_id, v.run_state, v.owner, v.next_check, $3::int8, v.steps, v.data`
	commitRows = `unnest($4::int8[], $5::int4[], $6::timestamptz[], $7::int4[], $8::int2[], $9::int4[], $10::timestamptz[], $11::bytea[], $12::bytea[])
       v(run_id, seq, at, workflow_id, run_state, owner, next_check, steps, data)`
	commitReturning = `
  RETURNING run_id, seq, at, workflow_id, run_state, owner, next_check
)`
	commitLanded = `, landed AS (` + commitInto + `
  FROM own, ` + commitRows
	commitOnConflict = `
  ON CONFLICT (run_id, seq) DO NOTHING`

	// commitNamed fails where a name or an id is taken: nothing lands.
	commitNamed = `, named AS (
  INSERT INTO engine.run_name (run_id, name, key)
  SELECT s.run_id, s.name, s.key FROM own, unnest($13::int8[], $14::text[], $15::text[]) s(run_id, name, key)
  RETURNING run_id
)`
	// commitKeyed takes a key that is free, or that a run held which has freed it
	// (engine.HoldsKey). A key that is held becomes NULL, which the table forbids:
	// nothing lands. A holder that this statement does not see yet counts as one
	// that holds.
	commitKeyed = `, keyed AS (
  INSERT INTO engine.context AS c (workflow, key, run_id)
  SELECT k.workflow, k.key, k.run_id
  FROM own, (SELECT count(*) FROM named) first, unnest($16::text[], $17::text[], $18::int8[]) k(workflow, key, run_id)` + commitTake
	commitTake = `
  ON CONFLICT (workflow, key) DO UPDATE SET run_id =
    CASE WHEN (SELECT r.state FROM engine.run r WHERE r.run_id = c.run_id) IN (11, 12, 13) THEN excluded.run_id END
  RETURNING 1
)`
	commitLandedNamed = `, landed AS (` + commitInto + `
  FROM own, (SELECT count(*) FROM named) first, ` + commitRows
	commitLandedKeyed = `, landed AS (` + commitInto + `
  FROM own, (SELECT count(*) FROM keyed) first, ` + commitRows

	// What begins a run under names lands apart from the rest where conflicts are
	// survived: fresh are those in whose way nothing stands that can be seen. What
	// cannot be seen yet fails the statement, and can be seen by the next.
	commitFresh = `, held AS MATERIALIZED (
  SELECT k.run_id FROM unnest($16::text[], $17::text[], $18::int8[]) k(workflow, key, run_id)
  JOIN engine.context c ON c.workflow = k.workflow AND c.key = k.key
  WHERE (SELECT r.state FROM engine.run r WHERE r.run_id = c.run_id) IN (11, 12, 13) IS NOT TRUE
), fresh AS MATERIALIZED (
  SELECT s.run_id, s.name, s.key FROM own, unnest($13::int8[], $14::text[], $15::text[]) s(run_id, name, key)
  WHERE NOT EXISTS (SELECT FROM engine.run_name n WHERE n.name = s.name)
    AND NOT EXISTS (SELECT FROM engine.journal j WHERE j.run_id = s.run_id AND j.seq = 0)
    AND s.run_id <> ALL (ARRAY(SELECT run_id FROM held))
), named AS (
  INSERT INTO engine.run_name (run_id, name, key) SELECT run_id, name, key FROM fresh RETURNING run_id
), keyed AS (
  INSERT INTO engine.context AS c (workflow, key, run_id)
  SELECT k.workflow, k.key, k.run_id FROM (SELECT count(*) FROM named) first, unnest($16::text[], $17::text[], $18::int8[]) k(workflow, key, run_id)
  WHERE k.run_id = ANY (ARRAY(SELECT run_id FROM fresh))` + commitTake
	commitLandedFresh = `, begun AS (` + commitInto + `
  FROM own, (SELECT count(*) FROM keyed) first, ` + commitRows + `
  WHERE v.seq = 0 AND v.run_id = ANY (ARRAY(SELECT run_id FROM fresh))` + commitReturning + `, others AS (` + commitInto + `
  FROM own, (SELECT count(*) FROM begun) first, ` + commitRows + `
  WHERE v.run_id <> ALL ($13::int8[])` + commitOnConflict + commitReturning + `, landed AS MATERIALIZED (SELECT * FROM begun UNION ALL SELECT * FROM others)`

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
	commitSide = `, listed AS (
  INSERT INTO engine.run_step (run_id, node, step, name)
  SELECT s.run_id, s.node, s.step, s.name
  FROM unnest($19::int8[], $20::int4[], $21::int4[], $22::text[]) s(run_id, node, step, name) JOIN landed l USING (run_id)
), alerted AS (
  INSERT INTO engine.alert (run_id, at, kind, step, code, message)
  SELECT l.run_id, l.at, a.kind, a.step, a.code, a.message
  FROM unnest($23::int8[], $24::int4[], $25::text[], $26::text[], $27::text[], $28::text[]) a(run_id, n, kind, step, code, message) JOIN landed l USING (run_id)
  ORDER BY l.run_id, a.n
)`
	commitConsumed = `, consumed AS (
  DELETE FROM engine.inbox i
  USING unnest($29::int8[], $30::int8[]) c(run_id, id) JOIN landed l USING (run_id)
  WHERE i.id = c.id AND i.run_id = c.run_id
)`
	commitAnswer = `
SELECT o.alive, l.n, CASE WHEN l.n < cardinality($4::int8[]) THEN l.ids END
FROM (SELECT count(*) AS alive FROM own) o, (SELECT count(*) AS n, array_agg(run_id) AS ids FROM landed) l`
)

// The shapes that are prepared, picked by what a batch holds: no transition
// should pay for branches that are empty. The normal form has no ON CONFLICT,
// which costs more than it is worth while nothing conflicts: a conflict is
// SQLSTATE 23505 and nothing has landed. What is rare shares one shape.
const (
	journalPlain         = commitOwn + commitLanded + commitReturning + commitAnswer
	journalBegin         = commitOwn + commitNamed + commitLandedNamed + commitReturning + commitCreated + commitAnswer
	journalAppend        = commitOwn + commitLanded + commitReturning + commitChanged + commitAnswer
	journalCreate        = commitOwn + commitLanded + commitReturning + commitCreated + commitChanged + commitAnswer
	journalNamed         = commitOwn + commitNamed + commitLandedNamed + commitReturning + commitCreated + commitChanged + commitAnswer
	journalKeyed         = commitOwn + commitNamed + commitKeyed + commitLandedKeyed + commitReturning + commitCreated + commitChanged + commitAnswer
	journalSide          = commitOwn + commitNamed + commitKeyed + commitLandedKeyed + commitReturning + commitCreated + commitChanged + commitSide + commitAnswer
	journalConsume       = commitOwn + commitNamed + commitKeyed + commitLandedKeyed + commitReturning + commitCreated + commitChanged + commitSide + commitConsumed + commitAnswer
	journalAppendIfNone  = commitOwn + commitLanded + commitOnConflict + commitReturning + commitChanged + commitAnswer
	journalCreateIfNone  = commitOwn + commitLanded + commitOnConflict + commitReturning + commitCreated + commitChanged + commitAnswer
	journalKeyedIfNone   = commitOwn + commitFresh + commitLandedFresh + commitCreated + commitChanged + commitAnswer
	journalSideIfNone    = commitOwn + commitFresh + commitLandedFresh + commitCreated + commitChanged + commitSide + commitAnswer
	journalConsumeIfNone = commitOwn + commitFresh + commitLandedFresh + commitCreated + commitChanged + commitSide + commitConsumed + commitAnswer
	journalWriters       = `SELECT j.run_id, j.writer FROM unnest($1::int8[], $2::int4[]) v(run_id, seq) JOIN engine.journal j USING (run_id, seq)`
	fenceOpen            = `SELECT EXISTS (SELECT FROM engine.fence WHERE engine = $1 AND writer = $2)`
)

// The statements of a submission that is made alone, in a transaction; in the
// same order.
const (
	runNameClaim = `
WITH own AS MATERIALIZED (
  SELECT 1 FROM engine.fence WHERE engine = $1::int4 AND writer = $2::int2 FOR NO KEY UPDATE
), claimed AS (
  INSERT INTO engine.run_name (run_id, name, key) SELECT $3::int8, $4::text, nullif($5::text, '') FROM own ON CONFLICT DO NOTHING RETURNING 1
)
SELECT EXISTS (SELECT FROM own), EXISTS (SELECT FROM claimed), EXISTS (SELECT FROM engine.workflow WHERE workflow_id = $6::int4)`
	// submissionsMet finds, for submissions, the run that has the name or else holds
	// the key.
	submissionsMet = `
SELECT s.n, coalesce(named.run_id, held.run_id), coalesce(named.name, held.name)
FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[]) s(n, name, workflow, key)
LEFT JOIN engine.run_name named ON named.name = s.name
LEFT JOIN LATERAL (
  SELECT c.run_id, h.name FROM engine.context c JOIN engine.run r USING (run_id) JOIN engine.run_name h USING (run_id)
  WHERE c.workflow = s.workflow AND c.key = s.key AND r.state NOT IN (11, 12, 13)) held ON named.run_id IS NULL
WHERE coalesce(named.run_id, held.run_id) IS NOT NULL`
	runNameHolder = `SELECT run_id, name FROM engine.run_name WHERE name = $1`
	contextClaim  = `
INSERT INTO engine.context AS c (workflow, key, run_id) VALUES ($1, $2, $3)
ON CONFLICT (workflow, key) DO UPDATE SET run_id = c.run_id RETURNING run_id`
	contextHolder  = `SELECT r.state, n.name FROM engine.run r JOIN engine.run_name n USING (run_id) WHERE r.run_id = $1`
	contextReplace = `UPDATE engine.context SET run_id = $3 WHERE workflow = $1 AND key = $2`

	// What a commit does, with a run that there never is (trialID): always rolled
	// back.
	trialJournal = `INSERT INTO engine.journal (run_id, seq, at, writer, data) VALUES ($1, 1, clock_timestamp(), 0, '\x00')`
	trialRun     = `INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at) VALUES ($1, 0, 1, 0, 0, 'infinity', clock_timestamp())`
	trialMove    = `UPDATE engine.run SET fence = 1 WHERE run_id = $1`
)

// trialID is larger than any run's id.
const trialID = 1<<63 - 1
