package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

const (
	lateKeep = `
WITH r AS (SELECT run_id FROM engine.run WHERE run_id = $1::int8
), kept AS (
  INSERT INTO engine.late_reply (run_id, node, call, outcome, at, step, code, data)
  SELECT run_id, $2::int4, $3::int4, $4::text, coalesce($5::timestamptz, pg_catalog.clock_timestamp()), $6::text, $7::text, $8::bytea FROM r
  ON CONFLICT DO NOTHING RETURNING run_id, at
), alerted AS (
  INSERT INTO engine.alert (run_id, at, kind, step, code, message) SELECT run_id, at, $9::text, $10::text, $11::text, $12::text FROM kept
)
SELECT EXISTS (SELECT FROM r)`
	lateList = `SELECT node, call, step, at, outcome, code, data FROM engine.late_reply WHERE run_id = $1 ORDER BY at, node, call, outcome LIMIT $2`

	// logKeep adds log lines. It also removes the oldest lines of the same runs, so that
	// each run has at most $7 lines. The DELETE does not see the new lines. So for each run
	// it keeps as many old lines as $7 minus the number of new lines.
	logKeep = `
WITH v AS MATERIALIZED (
  SELECT v.* FROM unnest($1::int8[], $2::timestamptz[], $3::text[], $4::int4[], $5::text[], $6::text[])
    WITH ORDINALITY v(run_id, at, step, attempt, level, message, n) JOIN engine.run USING (run_id)
), room AS (SELECT run_id, greatest($7::int8 - pg_catalog.count(*), 0) AS left FROM v GROUP BY run_id
), cut AS (
  DELETE FROM engine.log l USING room CROSS JOIN LATERAL (
    SELECT id FROM engine.log o WHERE o.run_id = room.run_id ORDER BY id DESC OFFSET room.left LIMIT 1) last
  WHERE l.run_id = room.run_id AND l.id <= last.id
)
INSERT INTO engine.log (run_id, at, step, attempt, level, message)
SELECT run_id, coalesce(at, pg_catalog.clock_timestamp()), step, attempt, level, message FROM v ORDER BY n`
	logList = `SELECT id, at, step, attempt, level, message FROM engine.log WHERE run_id = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// evidence is the part of a Store that keeps late replies and log lines. It also records
// which alerts were pushed.
type evidence struct {
	*access
	*views
}

// KeepLate stores a late reply and its alert, unless the same late reply is stored already.
// It returns ErrNotFound if there is no such run.
func (s *evidence) KeepLate(ctx context.Context, l store.LateReply) error {
	at := sql.NullTime{Time: l.At.Truncate(time.Microsecond), Valid: !l.At.IsZero()}
	a := l.Alert()
	var known bool
	err := s.db.QueryRowContext(ctx, lateKeep, int64(l.Run), int64(l.Node), int64(l.Call), naming.CleanText(l.Outcome), at,
		naming.CleanText(l.Step), naming.CleanText(l.Code), l.Data, a.Kind, a.Step, a.Code, a.Message).Scan(&known)
	if err != nil {
		return wrap("keep a late answer", err)
	}
	if !known {
		return store.ErrNotFound
	}
	return nil
}

// maxLate is the largest number of late replies that LateReplies returns.
const maxLate = 1000

// LateReplies returns the first 1,000 late replies of a run, oldest first.
func (s *evidence) LateReplies(ctx context.Context, run status.RunID) ([]store.LateReply, error) {
	rows, err := s.read(ctx, lateList, int64(run), maxLate)
	if err != nil {
		return nil, wrap("read late answers", err)
	}
	defer rows.Close()
	var out []store.LateReply
	for rows.Next() {
		l := store.LateReply{Run: run}
		if err := rows.Scan(&l.Node, &l.Call, &l.Step, &l.At, &l.Outcome, &l.Code, &l.Data); err != nil {
			return nil, wrap("read late answers", err)
		}
		l.At = l.At.UTC()
		out = append(out, l)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read late answers", err)
	}
	return out, nil
}

// KeepLogs stores lines that agents logged. It keeps only the last MaxLogLines lines of
// each run. It sends the statement only once, so that no line is stored twice. If the
// server's answer is lost, KeepLogs returns an error, and the lines may be stored or not.
func (s *evidence) KeepLogs(ctx context.Context, lines []store.LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	var run, at, step, attempt, level, message array
	for _, c := range []struct {
		a   *array
		oid uint32
	}{{&run, oidInt8}, {&at, oidTimestamptz}, {&step, oidText}, {&attempt, oidInt4}, {&level, oidText}, {&message, oidText}} {
		c.a.reset(c.oid)
	}
	for _, l := range newest(lines) {
		run.int8(int64(l.Run))
		if l.At.IsZero() {
			at.null()
		} else {
			at.time(l.At)
		}
		step.text(naming.CleanText(l.Step))
		attempt.int4(int32(l.Attempt))
		level.text(naming.CleanText(l.Level))
		message.text(naming.CleanText(l.Message))
	}
	// Use a transaction. Outside of a transaction, the pool may send a statement twice. Then the
	// lines would be stored twice.
	tx, err := s.begin(ctx)
	if err != nil {
		return wrap("keep logs", err)
	}
	if _, err := tx.ExecContext(ctx, logKeep, run.bytes(), at.bytes(), step.bytes(), attempt.bytes(), level.bytes(), message.bytes(), storekit.MaxLogLines); err != nil {
		return wrap("keep logs", rolledBack(tx, err))
	}
	if err := tx.Commit(); err != nil {
		return wrap("keep logs", err)
	}
	return nil
}

// newest returns the last MaxLogLines lines of each run, in order. It is useless to store
// earlier lines, because the next call of KeepLogs would remove them.
func newest(lines []store.LogLine) []store.LogLine {
	if len(lines) <= storekit.MaxLogLines {
		return lines
	}
	count := make(map[status.RunID]int)
	for _, l := range lines {
		count[l.Run]++
	}
	var out []store.LogLine
	for _, l := range lines {
		if count[l.Run] <= storekit.MaxLogLines {
			out = append(out, l)
		}
		count[l.Run]--
	}
	return out
}

// Logs returns log lines of a run, in the order of their ids. It returns only lines with an
// id greater than the parameter `after`. The parameter `limit` is the largest number of lines.
func (s *evidence) Logs(ctx context.Context, run status.RunID, after int64, limit int) ([]store.LogLine, error) {
	rows, err := s.read(ctx, logList, int64(run), after, limit)
	if err != nil {
		return nil, wrap("read logs", err)
	}
	defer rows.Close()
	var out []store.LogLine
	for rows.Next() {
		l := store.LogLine{Run: run}
		if err := rows.Scan(&l.ID, &l.At, &l.Step, &l.Attempt, &l.Level, &l.Message); err != nil {
			return nil, wrap("read logs", err)
		}
		l.At = l.At.UTC()
		out = append(out, l)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read logs", err)
	}
	return out, nil
}

const alertDelivered = `UPDATE engine.alert SET delivered_at = pg_catalog.clock_timestamp() WHERE id = ANY ($1::int8[]) AND delivered_at IS NULL`

// Undelivered returns the alerts that were not pushed yet, oldest first. The parameter
// `limit` is the largest number of alerts.
func (s *evidence) Undelivered(ctx context.Context, limit int) ([]store.AlertRow, error) {
	return s.alerts(ctx, "list alerts to push", alertUndelivered, limit)
}

// Delivered records that the alerts with these ids were pushed.
func (s *evidence) Delivered(ctx context.Context, ids []int64) error {
	if _, err := s.db.ExecContext(ctx, alertDelivered, pq.Int64Array(ids)); err != nil {
		return wrap("note pushed alerts", err)
	}
	return nil
}
