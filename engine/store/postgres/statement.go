package postgres

// writerSession prepares a connection for commits. It makes the server use generic plans.
// For a generic plan the server assumes ten elements for each array, and so uses a nested
// loop on the primary key. For a custom plan the server would use the real length of the
// arrays, and perhaps old statistics that say that the table is small. Then it would scan
// the whole table.
//
// The last statement of writerSession uses and frees one large block of memory. Afterwards the
// server's memory allocator (glibc) keeps free memory up to twice that size. Without this, each
// statement would return its memory to the kernel, and the next statement would request memory
// again. That takes a sixteenth of a commit's CPU time.
const writerSession = `
SET default_transaction_isolation = 'read committed';
SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET enable_seqscan = off; SET enable_memoize = off; SET jit = off;
SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '5s';
SELECT pg_catalog.octet_length(pg_catalog.repeat('x', 2097152));
`

// The server keeps a plan until the statistics of the tables change. If it makes a plan
// while a table has one row, the plan may read the whole table, because that is as cheap as
// using an index. The server would keep this plan while the table grows. So the statements
// below are written in a form for which the server must use the index. A join that finds
// rows by key uses "= ANY (ARRAY[key])". NOT EXISTS has OFFSET 0, so that the server does
// not turn it into a join. TestPlansOfSmallTables checks the plans.

// The commit statement, in parts. Arrays are sorted: journal rows by run, names by name, keys by
// workflow and key. Long arrays are expanded with unnest in a select list. In FROM, the server
// would first store the whole result of unnest. Locks are always taken in this order: fence, names,
// keys, journal rows by run, run rows. A part that must be executed after another part reads the
// rows of that part, or counts them.
const (
	commitOwn = `
WITH own AS MATERIALIZED (
  SELECT 1 FROM engine.fence WHERE engine = $1::int4 AND writer = $2::int2 FOR NO KEY UPDATE
)`
	commitInto = `
  INSERT INTO engine.journal (run_id, at, writer, seq, owner, run_state, steps, data)
  SELECT v.run_id, v.at, $3::int8, v.seq, v.owner, v.run_state, v.steps, v.data`
	commitRows      = `(SELECT pg_catalog.unnest($4::int8[]) AS run_id, pg_catalog.unnest($5::int4[]) AS seq, pg_catalog.unnest($6::timestamptz[]) AS at, pg_catalog.unnest($7::int4[]) AS owner, pg_catalog.unnest($8::int2[]) AS run_state, pg_catalog.unnest($9::bytea[]) AS steps, pg_catalog.unnest($10::bytea[]) AS data) v`
	commitReturning = `
  RETURNING run_id, at
)`
	commitLanded = `, landed AS (` + commitInto + `
  FROM own, ` + commitRows
	commitOnConflict = `
  ON CONFLICT (run_id, seq) DO NOTHING`

	// commitNamed inserts the names of new runs. It fails if a name or an id is in use.
	// Then nothing is committed.
	commitNamed = `, named AS (
  INSERT INTO engine.run_name (run_id, name, key, parent, trigger)
  SELECT s.run_id, s.name, s.key, ` + nameOrigin + ` FROM own, unnest($23::int8[], $24::text[], $25::text[], $26::int8[]) s(run_id, name, key, origin)
  RETURNING run_id
)`
	// nameOrigin computes two columns from the number that originOf returned: the id of the parent,
	// and the trigger. The trigger 5 is naming.ByParent.
	nameOrigin = `CASE WHEN s.origin > 0 THEN s.origin END, CASE WHEN s.origin > 0 THEN 5 ELSE -s.origin END`
	// commitKeyed gives keys to new runs. A key must be free (contextFree): the run that took the
	// key last does not hold it any more, and no open run waits for it. If the key is not free, the
	// statement sets run_id to NULL, which the table forbids. Then the statement fails, and nothing
	// is committed. The statement also fails if it does not see the run that took the key last.
	// There are two reasons for this: that run was committed after the statement began, or
	// retention has removed it.
	commitKeyed = `, keyed AS (
  INSERT INTO engine.context AS c (workflow, key, run_id, scope, retain)
  SELECT k.workflow, k.key, k.run_id, k.hold & 3::int8, nullif(k.hold >> 2, 0)
  FROM own, (SELECT pg_catalog.count(*) FROM named) first, unnest($27::text[], $28::text[], $29::int8[], $30::int8[]) k(workflow, key, run_id, hold)` + commitTake
	commitTake = `
  ON CONFLICT (workflow, key) DO UPDATE SET run_id = CASE WHEN ` + contextFree + ` THEN excluded.run_id END, ` + contextTaken + `
  RETURNING 1
)`
	// contextHeld says whether the run `r` holds the unique key of `c`, a row of the table
	// `context` (naming.KeyScope.Holds). The columns of `r` are NULL if the run does not exist any
	// more.
	contextHeld = `coalesce(r.state < 10 OR c.reset_at IS NULL AND (c.scope = 2 OR c.scope = 0 AND coalesce(r.state, c.ended) = 10
    AND (c.retain IS NULL OR coalesce(r.finished_at, c.ended_at) + c.retain::float8 * interval '1 microsecond' > pg_catalog.clock_timestamp())), false)`
	// contextFree says whether the unique key of `c`, a row of the table `context`, is free; NULL =
	// the run that took the key does not exist any more. If a run waits for the key, the key is
	// free only if the statement sees that this run has ended.
	contextFree = `(SELECT NOT ` + contextHeld + ` AND (c.next_run IS NULL OR EXISTS (SELECT FROM engine.run w WHERE w.run_id = c.next_run AND w.state >= 10 OFFSET 0))
    FROM engine.run r WHERE r.run_id = c.run_id)`
	// contextTaken sets the columns of the row of a key when another run takes the key.
	contextTaken      = `scope = excluded.scope, retain = excluded.retain, reset_at = NULL, ended = NULL, ended_at = NULL, run = NULL, next_run = NULL, next_scope = NULL, next_retain = NULL`
	commitLandedNamed = `, landed AS (` + commitInto + `
  FROM own, (SELECT pg_catalog.count(*) FROM named) first, ` + commitRows
	commitLandedKeyed = `, landed AS (` + commitInto + `
  FROM own, (SELECT pg_catalog.count(*) FROM keyed) first, ` + commitRows

	// commitFresh is part of the forms whose names end in IfNone: they leave out conflicting rows.
	// Its subquery `fresh` selects the new runs whose name and id are unused and whose key is free
	// (contextFree). Another transaction may commit a run with the same name, key or id meanwhile.
	// Then the statement fails. The writer sends the statement again, and then the statement sees
	// that run.
	commitFresh = `, held AS MATERIALIZED (
  SELECT k.run_id FROM unnest($27::text[], $28::text[], $29::int8[]) k(workflow, key, run_id)
  JOIN engine.context c ON c.workflow = ANY (ARRAY[k.workflow]) AND c.key = k.key
  WHERE ` + contextFree + ` IS NOT TRUE
), fresh AS MATERIALIZED (
  SELECT s.run_id, s.name, s.key, s.origin FROM own, unnest($23::int8[], $24::text[], $25::text[], $26::int8[]) s(run_id, name, key, origin)
  WHERE NOT EXISTS (SELECT FROM engine.run_name n WHERE n.name = s.name OFFSET 0)
    AND NOT EXISTS (SELECT FROM engine.journal j WHERE j.run_id = s.run_id AND j.seq = 0 OFFSET 0)
    AND s.run_id <> ALL (ARRAY(SELECT run_id FROM held))
), named AS (
  INSERT INTO engine.run_name (run_id, name, key, parent, trigger) SELECT s.run_id, s.name, s.key, ` + nameOrigin + ` FROM fresh s RETURNING run_id
), keyed AS (
  INSERT INTO engine.context AS c (workflow, key, run_id, scope, retain)
  SELECT k.workflow, k.key, k.run_id, k.hold & 3::int8, nullif(k.hold >> 2, 0)
  FROM (SELECT pg_catalog.count(*) FROM named) first, unnest($27::text[], $28::text[], $29::int8[], $30::int8[]) k(workflow, key, run_id, hold)
  WHERE k.run_id = ANY (ARRAY(SELECT run_id FROM fresh))` + commitTake
	commitLandedFresh = `, begun AS (` + commitInto + `
  FROM own, (SELECT pg_catalog.count(*) FROM keyed) first, ` + commitRows + `
  WHERE v.seq = 0 AND v.run_id = ANY (ARRAY(SELECT run_id FROM fresh))` + commitReturning + `, others AS (` + commitInto + `
  FROM own, (SELECT pg_catalog.count(*) FROM begun) first, ` + commitRows + `
  WHERE v.run_id <> ALL ($23::int8[])` + commitOnConflict + commitReturning + `, landed AS MATERIALIZED (SELECT * FROM begun UNION ALL SELECT * FROM others)`

	// commitCreated inserts the rows of new runs, and commitChanged changes the rows of existing
	// runs. A transition that does not change the row of its run has no element in the arrays of
	// these two parts. In the forms whose names end in IfNone, the two parts end with createdLanded
	// and changedLanded. These endings leave out each run whose journal row was left out.
	commitCreated = `, created AS (
  INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at, finished_at)
  SELECT c.run_id, c.workflow_id, c.state, c.owner, 0, c.next_check, c.at, CASE WHEN c.state >= 10 THEN c.at END
  FROM own, (SELECT pg_catalog.count(*) FROM landed) first,
       (SELECT pg_catalog.unnest($11::int8[]) AS run_id, pg_catalog.unnest($12::timestamptz[]) AS at, pg_catalog.unnest($13::int4[]) AS workflow_id, pg_catalog.unnest($14::int2[]) AS state, pg_catalog.unnest($15::int4[]) AS owner, pg_catalog.unnest($16::timestamptz[]) AS next_check) c`
	commitChanged = `, changed AS (
  UPDATE engine.run r
  SET state = coalesce(c.state, r.state), next_check = coalesce(c.next_check, r.next_check),
      owner = coalesce(c.owner, r.owner), fence = CASE WHEN c.owner IS NULL THEN r.fence ELSE c.seq END,
      finished_at = CASE WHEN c.state IS NULL THEN r.finished_at WHEN c.state >= 10 THEN c.at END
  FROM own, (SELECT pg_catalog.count(*) FROM landed) first, `
	changesBeside = `(SELECT pg_catalog.unnest($17::int8[]) AS run_id, pg_catalog.unnest($18::timestamptz[]) AS at, pg_catalog.unnest($19::int4[]) AS seq, pg_catalog.unnest($20::int2[]) AS state, pg_catalog.unnest($21::int4[]) AS owner, pg_catalog.unnest($22::timestamptz[]) AS next_check`
	changesOnly   = `(SELECT pg_catalog.unnest($11::int8[]) AS run_id, pg_catalog.unnest($12::timestamptz[]) AS at, pg_catalog.unnest($13::int4[]) AS seq, pg_catalog.unnest($14::int2[]) AS state, pg_catalog.unnest($15::int4[]) AS owner, pg_catalog.unnest($16::timestamptz[]) AS next_check`
	changesEnd    = `) c
  WHERE r.run_id = ANY (ARRAY[c.run_id])`
	// If more messages wait for a run than Transition.Heard says, the statement does not change the
	// run. Then the run counts as missing (runGone), and nothing is committed.
	changesHeardBeside = `, pg_catalog.unnest($43::int4[]) AS heard) c
  WHERE r.run_id = ANY (ARRAY[c.run_id])` + changesHeard
	changesHeardOnly = `, pg_catalog.unnest($17::int4[]) AS heard) c
  WHERE r.run_id = ANY (ARRAY[c.run_id])` + changesHeard
	changesHeard = ` AND (c.heard IS NULL OR (SELECT pg_catalog.count(*) FROM engine.inbox i WHERE i.run_id = c.run_id) <= c.heard)`

	createdEnd    = `)`
	changedEnd    = ` RETURNING 1)`
	createdLanded = `
  WHERE c.run_id = ANY (ARRAY(SELECT run_id FROM landed)))`
	changedLanded = ` AND c.run_id = ANY (ARRAY(SELECT run_id FROM landed)) RETURNING 1)`

	commitRuns            = commitCreated + createdEnd + commitChanged + changesBeside + changesEnd + changedEnd
	commitRunsLanded      = commitCreated + createdLanded + commitChanged + changesBeside + changesEnd + changedLanded
	commitRunsHeard       = commitCreated + createdEnd + commitChanged + changesBeside + changesHeardBeside + changedEnd
	commitRunsHeardLanded = commitCreated + createdLanded + commitChanged + changesBeside + changesHeardBeside + changedLanded
	commitSide            = `, listed AS (
  INSERT INTO engine.run_step (run_id, node, step, name)
  SELECT s.run_id, s.node, s.step, s.name
  FROM unnest($31::int8[], $32::int4[], $33::int4[], $34::text[]) s(run_id, node, step, name) JOIN landed l USING (run_id)
  ON CONFLICT (run_id, node) DO UPDATE SET name = excluded.name
), alerted AS (
  INSERT INTO engine.alert (run_id, at, kind, step, code, message)
  SELECT l.run_id, l.at, a.kind, a.step, a.code, a.message
  FROM unnest($35::int8[], $36::int4[], $37::text[], $38::text[], $39::text[], $40::text[]) a(run_id, n, kind, step, code, message) JOIN landed l USING (run_id)
  WHERE a.kind NOT IN ('` + noticeKind + `', '` + replyKind + `', '` + movedKind + `')
  ORDER BY l.run_id, a.n
), noticed AS (
  INSERT INTO engine.notice (run_id, seq, state)
  SELECT l.run_id, a.n, a.step
  FROM unnest($35::int8[], $36::int4[], $37::text[], $38::text[]) a(run_id, n, kind, step) JOIN landed l USING (run_id)
  WHERE a.kind = '` + noticeKind + `'
), replied AS (
  INSERT INTO engine.reply (run_id, n, sink, correlation, state, at)
  SELECT l.run_id, a.n + (SELECT coalesce(pg_catalog.max(p.n), 0) FROM engine.reply p WHERE p.run_id = l.run_id), a.code, a.message, a.step, l.at
  FROM unnest($35::int8[], $36::int4[], $37::text[], $38::text[], $39::text[], $40::text[]) a(run_id, n, kind, step, code, message) JOIN landed l USING (run_id)
  WHERE a.kind = '` + replyKind + `'
), relinked AS (
  INSERT INTO engine.run_moved (run_id, workflow_id)
  SELECT l.run_id, a.n
  FROM unnest($35::int8[], $36::int4[], $37::text[]) a(run_id, n, kind) JOIN landed l USING (run_id)
  WHERE a.kind = '` + movedKind + `'
  ON CONFLICT (run_id) DO UPDATE SET workflow_id = excluded.workflow_id
)`
	// movedKind marks rows in the arrays of alerts that say that a run moves to another definition.
	// The column `n` is the id of the workflow that the run has now. A transition has at most one
	// such row.
	movedKind = "#moved"
	// replyKind marks the replies in the arrays of alerts. For a reply, the column `n` is the
	// number of the reply in its transition, beginning with 1. The column `step` is the state,
	// `code` is the sink, and `message` is the correlation id. The statement adds `n` to the number
	// of the run's replies in the table. So the replies of a run are numbered without gaps, because
	// only one engine can write the next row of the run.
	replyKind = "#reply"
	// noticeKind marks the notices in the arrays of alerts. For a notice, the column `n` is the
	// number of the journal row, and `step` is the state. Notices use these arrays, so that the
	// commit statement needs no further arguments for them.
	noticeKind     = "#notice"
	commitConsumed = `, consumed AS (
  DELETE FROM engine.inbox i
  USING unnest($41::int8[], $42::int8[]) c(run_id, id) JOIN landed l USING (run_id)
  WHERE i.id = ANY (ARRAY[c.id]) AND i.run_id = ANY (ARRAY[c.run_id])
)`
	// The last part of the commit statement returns whether the fence row exists, and which rows
	// are committed. If the statement must change the row of a run, and this row was not found, the
	// statement fails with the text runGone, and nothing is committed. For example, retention has
	// removed this run. Then the journal must not get a row without a run.
	commitAnswer = `
SELECT (SELECT pg_catalog.count(*) FROM own), (SELECT pg_catalog.count(*) FROM landed), NULL::int8[]`
	commitAnswerOnly = `
SELECT o.n, CASE WHEN l.n > 0 AND c.n < pg_catalog.cardinality($11::int8[]) THEN ('` + runGone + `' || pg_catalog.left(c.n::text, 0))::int8 ELSE l.n END, NULL::int8[]` + commitCounts
	commitAnswerBeside = `
SELECT o.n, CASE WHEN l.n > 0 AND c.n < pg_catalog.cardinality($17::int8[]) THEN ('` + runGone + `' || pg_catalog.left(c.n::text, 0))::int8 ELSE l.n END, NULL::int8[]` + commitCounts
	commitCounts = `
FROM (SELECT pg_catalog.count(*) AS n FROM own) o, (SELECT pg_catalog.count(*) AS n FROM landed) l, (SELECT pg_catalog.count(*) AS n FROM changed) c`
	commitAnswerSome = `
SELECT o.alive, CASE WHEN c.n < (SELECT pg_catalog.count(*) FROM pg_catalog.unnest($17::int8[]) m(run_id) WHERE m.run_id = ANY (l.ids)) THEN ('` + runGone + `' || pg_catalog.left(c.n::text, 0))::int8 ELSE l.n END,
  CASE WHEN l.n < pg_catalog.cardinality($4::int8[]) THEN l.ids END
FROM (SELECT pg_catalog.count(*) AS alive FROM own) o, (SELECT pg_catalog.count(*) AS n, pg_catalog.array_agg(run_id) AS ids FROM landed) l, (SELECT pg_catalog.count(*) AS n FROM changed) c`
)

// runGone is a text that is not a number. If a statement casts it to a number, the server fails
// with an error that contains this text. The statements append another text, which the server knows
// only when it executes the statement. Without this other text, the server would fail already when
// it makes the plan.
const runGone = "this run is gone"

// The forms of the commit statement, and after them two statements that only read. The method
// batch.shape selects a form with only those parts that the batch needs. The normal forms insert
// names and journal rows without ON CONFLICT, because ON CONFLICT is slow and conflicts are rare.
// With a conflict, a normal form fails, and nothing is committed. The SQLSTATE is 23505; if a key
// is not free, it is 23502. The forms whose names end in IfNone tolerate conflicts. All rare
// combinations of parts use journalConsume or journalConsumeIfNone, which have all parts.
const (
	journalPlain         = commitOwn + commitLanded + commitReturning + commitAnswer
	journalBegin         = commitOwn + commitLanded + commitReturning + commitCreated + createdEnd + commitAnswer
	journalAppend        = commitOwn + commitLanded + commitReturning + commitChanged + changesOnly + changesEnd + changedEnd + commitAnswerOnly
	journalHeard         = commitOwn + commitLanded + commitReturning + commitChanged + changesOnly + changesHeardOnly + changedEnd + commitAnswerOnly
	journalCreate        = commitOwn + commitLanded + commitReturning + commitRuns + commitAnswerBeside
	journalNamed         = commitOwn + commitNamed + commitLandedNamed + commitReturning + commitRuns + commitAnswerBeside
	journalKeyed         = commitOwn + commitNamed + commitKeyed + commitLandedKeyed + commitReturning + commitRuns + commitAnswerBeside
	journalSide          = commitOwn + commitNamed + commitKeyed + commitLandedKeyed + commitReturning + commitRuns + commitSide + commitAnswerBeside
	journalConsume       = commitOwn + commitNamed + commitKeyed + commitLandedKeyed + commitReturning + commitRunsHeard + commitSide + commitConsumed + commitAnswerBeside
	journalCreateIfNone  = commitOwn + commitLanded + commitOnConflict + commitReturning + commitRunsLanded + commitAnswerSome
	journalKeyedIfNone   = commitOwn + commitFresh + commitLandedFresh + commitRunsLanded + commitAnswerSome
	journalSideIfNone    = commitOwn + commitFresh + commitLandedFresh + commitRunsLanded + commitSide + commitAnswerSome
	journalConsumeIfNone = commitOwn + commitFresh + commitLandedFresh + commitRunsHeardLanded + commitSide + commitConsumed + commitAnswerSome
	journalWriters       = `SELECT j.run_id, j.writer FROM unnest($1::int8[], $2::int4[]) v(run_id, seq) JOIN engine.journal j ON j.run_id = ANY (ARRAY[v.run_id]) AND j.seq = v.seq`
	fenceOpen            = `SELECT EXISTS (SELECT FROM engine.fence WHERE engine = $1 AND writer = $2)`
)

// The statements for one submission in a separate transaction. They lock rows in the same
// order as the commit statement, so that they do not deadlock.
const (
	runNameClaim = `
WITH own AS MATERIALIZED (
  SELECT 1 FROM engine.fence WHERE engine = $1::int4 AND writer = $2::int2 FOR NO KEY UPDATE
), claimed AS (
  INSERT INTO engine.run_name (run_id, name, key, parent, trigger) SELECT $3::int8, $4::text, nullif($5::text, ''), ` + nameOrigin + ` FROM own, (SELECT $7::int8 AS origin) s WHERE $4 <> '' ON CONFLICT DO NOTHING RETURNING 1
)
SELECT EXISTS (SELECT FROM own), EXISTS (SELECT FROM claimed), EXISTS (SELECT FROM engine.workflow WHERE workflow_id = $6::int4)`
	// submissionsMet returns, for each submission, the run that has the submission's name.
	// If there is no such run, it returns the run that holds the submission's key. If there
	// is neither, it returns no row.
	submissionsMet = `
SELECT s.n, coalesce(named.run_id, held.run_id), coalesce(named.name, held.name), named.run_id IS NULL AND held.gone
FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[]) s(n, name, workflow, key)
LEFT JOIN engine.run_name named ON named.name = s.name
LEFT JOIN LATERAL (
  SELECT c.run_id, coalesce(h.name, c.run) AS name, r.run_id IS NULL AS gone
  FROM engine.context c LEFT JOIN engine.run r USING (run_id) LEFT JOIN engine.run_name h USING (run_id)
  WHERE c.workflow = s.workflow AND c.key = s.key AND (r.run_id IS NOT NULL OR c.run IS NOT NULL) AND ` + contextHeld + `) held ON named.run_id IS NULL
WHERE coalesce(named.run_id, held.run_id) IS NOT NULL`
	runNameHolder = `SELECT run_id, name FROM engine.run_name WHERE name = $1`
	contextClaim  = `
INSERT INTO engine.context AS c (workflow, key, run_id, scope, retain) VALUES ($1, $2, $3, $4, nullif($5::int8, 0))
ON CONFLICT (workflow, key) DO UPDATE SET run_id = c.run_id RETURNING run_id`
	// contextHolder describes the run that took a key last: its name, whether retention has removed
	// it, whether it holds the key, and whether it is open. It also returns the id and the name of
	// the open run that waits for the key; 0 = none.
	contextHolder = `
SELECT coalesce(n.name, c.run, ''), r.run_id IS NULL, ` + contextHeld + `, coalesce(r.state < 10, false), coalesce(w.run_id, 0), coalesce(w.name, '')
FROM engine.context c LEFT JOIN engine.run r USING (run_id) LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN LATERAL (SELECT x.run_id, y.name FROM engine.run x LEFT JOIN engine.run_name y ON y.run_id = ANY (ARRAY[x.run_id])
  WHERE x.run_id = c.next_run AND x.state < 10 OFFSET 0) w ON true
WHERE c.workflow = $1 AND c.key = $2`
	contextReplace = `
INSERT INTO engine.context AS c (workflow, key, run_id, scope, retain) VALUES ($1, $2, $3, $4, nullif($5::int8, 0))
ON CONFLICT (workflow, key) DO UPDATE SET run_id = excluded.run_id, ` + contextTaken

	// A writer sends these statements to find out whether the server accepts new rows. They
	// make the same changes as a commit, but for a run that never exists (trialID). Their
	// transaction is always rolled back.
	trialJournal = `INSERT INTO engine.journal (run_id, seq, at, writer, data) VALUES ($1, 1, pg_catalog.clock_timestamp(), 0, '\x00')`
	trialRun     = `INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at) VALUES ($1, 0, 1, 0, 0, 'infinity', pg_catalog.clock_timestamp())`
	trialMove    = `UPDATE engine.run SET fence = 1 WHERE run_id = $1`
)

// trialID is greater than the id of every run.
const trialID = 1<<63 - 1
