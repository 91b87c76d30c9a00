// Package outbox keeps the replies of runs in PostgreSQL.
//
// In: the calls of the role replies.Outbox. Out: statements on the table engine.reply. The commit
// statement of package postgres writes the replies. The package opens no connection of its own.
package outbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

const (
	replyColumns = `p.run_id, p.n, p.sink, p.correlation, p.state, p.at, p.tries, p.why, p.done, coalesce(m.name, engine.run_public(p.run_id)), w.name, coalesce(m.key, '')`
	replyJoins   = ` JOIN engine.run u USING (run_id) JOIN engine.workflow w USING (workflow_id) LEFT JOIN engine.run_name m USING (run_id)`
	// replyNext is the beginning of replyTake and replyClaim. It selects the next reply of each run
	// that has a reply for a sink. replyTake and replyClaim lock the rows that they use. So two
	// callers get different runs, and the replies of a run keep their order.
	replyNext = `
WITH next AS MATERIALIZED (
  SELECT r.run_id, r.n FROM engine.reply r
  WHERE r.sink = $1 AND NOT r.done
    AND (r.n = 1 OR NOT EXISTS (SELECT FROM engine.reply p WHERE p.run_id = r.run_id AND p.n = r.n - 1 AND NOT p.done))`
	replyTake = replyNext + `
  ORDER BY r.due, r.run_id, r.n LIMIT $2 FOR UPDATE OF r SKIP LOCKED
), p AS (
  UPDATE engine.reply r SET done = true FROM next WHERE r.run_id = ANY (ARRAY[next.run_id]) AND r.n = next.n RETURNING r.*
)
SELECT ` + replyColumns + ` FROM p` + replyJoins + ` ORDER BY p.run_id, p.n`
	replyClaim = replyNext + ` AND r.due <= pg_catalog.clock_timestamp()
  ORDER BY r.due, r.run_id, r.n LIMIT $2 FOR UPDATE OF r SKIP LOCKED
), held AS (
  UPDATE engine.reply r SET due = pg_catalog.clock_timestamp() + $3::float8 * interval '1 microsecond', tries = r.tries + (r.n = next.n)::int4
  FROM next WHERE r.run_id = ANY (ARRAY[next.run_id]) AND r.n >= next.n AND NOT r.done RETURNING r.*, next.n AS first
), p AS (SELECT * FROM held WHERE n = first)
SELECT ` + replyColumns + ` FROM p` + replyJoins + ` ORDER BY p.run_id, p.n`
	replyWaiting = `SELECT ` + replyColumns + ` FROM engine.reply p` + replyJoins + ` WHERE p.sink = $1 AND NOT p.done ORDER BY p.due, p.run_id, p.n LIMIT $2`
	replyOfRun   = `SELECT ` + replyColumns + ` FROM engine.reply p` + replyJoins + ` WHERE p.run_id = $1 ORDER BY p.n`
	// replySinks finds each sink with one search in the index, and does not read all replies.
	replySinks = `
WITH RECURSIVE s(sink) AS (
  (SELECT r.sink FROM engine.reply r WHERE NOT r.done AND r.sink > $1 AND r.sink < $2 ORDER BY r.sink LIMIT 1)
  UNION ALL
  SELECT (SELECT r.sink FROM engine.reply r WHERE NOT r.done AND r.sink > s.sink AND r.sink < $2 ORDER BY r.sink LIMIT 1) FROM s WHERE s.sink IS NOT NULL
)`
	replyDue = replySinks + `
SELECT s.sink FROM s WHERE s.sink IS NOT NULL
  AND EXISTS (SELECT FROM engine.reply r WHERE NOT r.done AND r.sink = s.sink AND r.due <= pg_catalog.clock_timestamp() OFFSET 0) LIMIT $3`
	replyLag = replySinks + `
SELECT s.sink, c.n, c.oldest FROM s, LATERAL (
  SELECT pg_catalog.count(*) AS n, pg_catalog.min(x.at) AS oldest FROM (SELECT r.at FROM engine.reply r WHERE NOT r.done AND r.sink = s.sink ORDER BY r.due LIMIT $4) x
) c WHERE s.sink IS NOT NULL AND c.n > 0 LIMIT $3`
	replyDelivered = `
UPDATE engine.reply r SET done = r.n = v.n, due = '-infinity', why = ''
FROM unnest($1::int8[], $2::int4[]) v(run_id, n)
WHERE r.run_id = ANY (ARRAY[v.run_id]) AND r.n >= v.n AND NOT r.done
  AND EXISTS (SELECT FROM engine.reply f WHERE f.run_id = v.run_id AND f.n = v.n AND NOT f.done OFFSET 0)`
	replyLater = `
UPDATE engine.reply r SET due = pg_catalog.clock_timestamp() + $3::float8 * interval '1 microsecond', why = CASE WHEN r.n = $2 THEN $4 ELSE r.why END
WHERE r.run_id = $1 AND r.n >= $2 AND NOT r.done AND EXISTS (SELECT FROM engine.reply f WHERE f.run_id = $1 AND f.n = $2 AND NOT f.done)`
	// replyHint is never sent in a transaction that commits transitions, because NOTIFY locks the
	// whole database while its transaction commits.
	replyHint = `SELECT pg_catalog.pg_notify('engine_replies', q) FROM unnest($1::text[]) q`
)

// A Keeper implements replies.Keeper.
type Keeper struct{ Box *Box }

// Replies returns the outbox.
func (k *Keeper) Replies() replies.Outbox { return k.Box }

// A Box implements replies.Outbox. All fields are required.
type Box struct {
	DB      func() *sql.DB                     // returns the pool for all statements
	Explain func(what string, err error) error // adds the name of the operation to the text of an error that is not nil
}

func (b *Box) list(ctx context.Context, what, query string, args ...any) ([]replies.Reply, error) {
	rows, err := b.DB().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, b.Explain(what, err)
	}
	defer rows.Close()
	var out []replies.Reply
	for rows.Next() {
		var r replies.Reply
		if err := rows.Scan(&r.Run, &r.N, &r.Sink, &r.Correlation, &r.State, &r.At, &r.Tries, &r.Why, &r.Done, &r.Name, &r.Workflow, &r.Key); err != nil {
			return nil, b.Explain(what, err)
		}
		r.At = r.At.UTC()
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, b.Explain(what, err)
	}
	return out, nil
}

func (b *Box) run(ctx context.Context, what, query string, args ...any) error {
	if _, err := b.DB().ExecContext(ctx, query, args...); err != nil {
		return b.Explain(what, err)
	}
	return nil
}

// Take returns the next replies of runs that have a reply for the sink, one of each run and at most
// `limit` replies. It marks these replies as done.
func (b *Box) Take(ctx context.Context, sink string, limit int) ([]replies.Reply, error) {
	return b.list(ctx, "take replies", replyTake, sink, limit)
}

// Waiting returns those replies for the sink that are not marked as done.
func (b *Box) Waiting(ctx context.Context, sink string, limit int) ([]replies.Reply, error) {
	return b.list(ctx, "list replies", replyWaiting, sink, limit)
}

// Claim returns the next replies of runs that have a reply for the sink, one of each run and at
// most `limit` replies. It leaves out replies that no engine can claim now. Until the duration
// claimTime has passed, no engine can claim a reply of these runs again.
func (b *Box) Claim(ctx context.Context, sink string, limit int, claimTime time.Duration) ([]replies.Reply, error) {
	return b.list(ctx, "claim replies", replyClaim, sink, limit, claimTime.Microseconds())
}

// OfRun returns all replies of a run, ascending by number.
func (b *Box) OfRun(ctx context.Context, run status.RunID) ([]replies.Reply, error) {
	return b.list(ctx, "list the replies of a run", replyOfRun, int64(run))
}

// Due returns the sinks that have a reply which an engine may claim now, sorted by name.
func (b *Box) Due(ctx context.Context, after, before string, limit int) ([]string, error) {
	const what = "look for replies to send"
	rows, err := b.DB().QueryContext(ctx, replyDue, after, before, limit)
	if err != nil {
		return nil, b.Explain(what, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var sink string
		if err := rows.Scan(&sink); err != nil {
			return nil, b.Explain(what, err)
		}
		out = append(out, sink)
	}
	if err := rows.Err(); err != nil {
		return nil, b.Explain(what, err)
	}
	return out, nil
}

// Lag returns the sinks for which replies wait, sorted by name.
func (b *Box) Lag(ctx context.Context) ([]replies.Lag, error) {
	const what = "count the replies that wait"
	rows, err := b.DB().QueryContext(ctx, replyLag, "", "~", replies.MaxSinks, replies.LagLimit)
	if err != nil {
		return nil, b.Explain(what, err)
	}
	defer rows.Close()
	var out []replies.Lag
	for rows.Next() {
		var l replies.Lag
		if err := rows.Scan(&l.Sink, &l.Waiting, &l.Oldest); err != nil {
			return nil, b.Explain(what, err)
		}
		l.Oldest = l.Oldest.UTC()
		out = append(out, l)
	}
	if err := rows.Err(); err != nil {
		return nil, b.Explain(what, err)
	}
	return out, nil
}

// Delivered marks replies as done.
func (b *Box) Delivered(ctx context.Context, done ...replies.ID) error {
	if len(done) == 0 {
		return nil
	}
	runs, numbers := make(pq.Int64Array, len(done)), make(pq.Int32Array, len(done))
	for i, id := range done {
		runs[i], numbers[i] = int64(id.Run), id.N
	}
	return b.run(ctx, "mark replies", replyDelivered, runs, numbers)
}

// Later records why a reply was not delivered. No engine can claim the reply during the pause.
// Later does nothing if the reply is done.
func (b *Box) Later(ctx context.Context, id replies.ID, pause time.Duration, why string) error {
	return b.run(ctx, "put off a reply", replyLater, int64(id.Run), id.N, pause.Microseconds(), naming.CleanText(why))
}

// Hint sends one NOTIFY for each queue on the channel engine_replies. The payload is the queue's
// name.
func (b *Box) Hint(ctx context.Context, queues ...string) error {
	return b.run(ctx, "hint at replies", replyHint, pq.StringArray(queues))
}
