package postgres

import (
	"encoding/binary"

	"github.com/saga-engine/engine/engine/store"
)

// The statements of a commit of one transition that nothing comes with: the
// commit of an engine that works on one run, where the server would take longer to set up
// what reads arrays than to do the rest. They do what those of more do, in the
// same order. They return one row if the transition has landed, and none if the
// engine is fenced; a conflict is SQLSTATE 23505.
const (
	singleInto = `
INSERT INTO engine.journal (run_id, at, writer, seq, owner, run_state, steps, data)
SELECT $4::int8, $6::timestamptz, $3::int8, $5::int4, $7::int4, $8::int2, $9::bytea, $10::bytea
FROM engine.fence WHERE engine = $1::int4 AND writer = $2::int2 FOR NO KEY UPDATE`
	singleLanded = `
WITH landed AS (` + singleInto + ` RETURNING 1)`

	singlePlain = singleInto + `
RETURNING 1, 1, NULL::int8[]`
	singleBegin = singleLanded + `
INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at, finished_at)
SELECT $4, $11::int4, $8, $7, 0, $12::timestamptz, $6, CASE WHEN $8 >= 10 THEN $6 END FROM landed
RETURNING 1, 1, NULL::int8[]`
	singleAppend = singleLanded + singleChanged + singleAnswer
	singleHeard  = singleLanded + singleChanged + `
    AND (SELECT pg_catalog.count(*) FROM engine.inbox i WHERE i.run_id = $4) <= $12::int4` + singleAnswer

	singleChanged = `, changed AS (
  UPDATE engine.run r
  SET state = coalesce($8, r.state), next_check = coalesce($11::timestamptz, r.next_check),
      owner = coalesce($7, r.owner), fence = CASE WHEN $7 IS NULL THEN r.fence ELSE $5 END,
      finished_at = CASE WHEN $8 IS NULL THEN r.finished_at WHEN $8 >= 10 THEN $6 END
  FROM landed WHERE r.run_id = $4`
	singleAnswer = `
  RETURNING 1
)
SELECT 1, CASE WHEN c.n = 0 THEN ('` + runGone + `' || pg_catalog.left(c.n::text, 0))::int8 ELSE 1 END, NULL::int8[]
FROM landed, (SELECT pg_catalog.count(*) AS n FROM changed) c`
)

// single reports whether the batch is one transition that nothing comes with.
func (b *batch) single() bool { return len(b.items) == 1 && !b.names && !b.side && !b.consume }

// singleShape picks the statement for the batch's only transition.
func (b *batch) singleShape() string {
	switch {
	case b.creates:
		return singleBegin
	case b.heard:
		return singleHeard
	case b.moves:
		return singleAppend
	}
	return singlePlain
}

// singleArgs are the arguments of that statement, valid until the next call.
func (b *batch) singleArgs(id store.EngineID, writer int, token int64) []any {
	args := append(b.sent[:0], int64(id), int64(writer), token, b.run.only(), b.seq.only(), b.at.only(), b.owner.only(), b.state.only(), b.steps.only(), b.data.only())
	switch {
	case b.creates:
		args = append(args, b.newFlow.only(), b.newCheck.only())
	case b.heard:
		args = append(args, b.oldCheck.only(), b.oldHeard.only())
	case b.moves:
		args = append(args, b.oldCheck.only())
	}
	b.sent = args
	return args
}

// only returns the only element of the array as an argument, valid until the next
// reset.
func (a *array) only() any {
	if int32(binary.BigEndian.Uint32(a.buf[arrayHeader:])) < 0 {
		return nil
	}
	return a.buf[arrayHeader+4:]
}
