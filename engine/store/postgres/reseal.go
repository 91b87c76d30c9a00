package postgres

import (
	"context"
	"database/sql"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
)

const (
	settingMove      = `UPDATE engine.setting SET value = $3 WHERE name = $1 AND value = $2`
	definitionList   = `SELECT digest, data FROM engine.definition WHERE digest > $1 ORDER BY digest LIMIT $2`
	definitionReseal = `UPDATE engine.definition SET data = $2 WHERE digest = $1`
	messagesOfRuns   = `SELECT run_id, id, data FROM engine.inbox WHERE run_id = ANY ($1::int8[]) ORDER BY id`
	lateOfRuns       = `SELECT run_id, node, call, outcome, data FROM engine.late_reply WHERE run_id = ANY ($1::int8[]) ORDER BY at, node, call, outcome`

	// resealLock waits until no session changes the partitions of the journal, and prevents such
	// changes until its own transaction ends. A session that changes partitions copies rows to
	// another partition. If a row was replaced during the copying, the copy would have the old
	// data.
	resealLock = `SELECT pg_catalog.pg_advisory_xact_lock(7237102917306)`
	resealRun  = `SELECT EXISTS (SELECT FROM engine.run WHERE run_id = $1 FOR KEY SHARE)`
	// resealNext appends a row to the journal of a run, and does not change the row of the run
	// itself. It does nothing if the journal has a row with this number already, or if the previous
	// row is missing. The new row has the token 0. No commit has this token, so no writer believes
	// that it has written the row (Writer.token).
	resealNext = `
INSERT INTO engine.journal (run_id, seq, at, writer, data) SELECT $1::int8, $2::int4, $3::timestamptz, 0, $4::bytea
WHERE EXISTS (SELECT FROM engine.journal WHERE run_id = $1 AND seq = $2::int4 - 1)
ON CONFLICT (run_id, seq) DO NOTHING`
	resealRows = `
UPDATE engine.journal j SET data = v.data FROM unnest($2::int4[], $3::bytea[]) v(seq, data) WHERE j.run_id = $1::int8 AND j.seq = v.seq`
	resealMessages = `
UPDATE engine.inbox i SET data = v.data FROM unnest($2::int8[], $3::bytea[]) v(id, data) WHERE i.run_id = $1::int8 AND i.id = v.id`
	resealLate = `
UPDATE engine.late_reply l SET data = v.data FROM unnest($2::int4[], $3::int4[], $4::text[], $5::bytea[]) v(node, call, outcome, data)
WHERE l.run_id = $1::int8 AND l.node = v.node AND l.call = v.call AND l.outcome = v.outcome`
)

// resealer implements rekey.Resealer: it replaces sealed data. Only a role that owns the tables may
// change definitions and the rows of the journal.
type resealer struct {
	*access
	*catalogue
}

// Repin replaces the value of a setting, but only if the present value equals the parameter `old`
// ("" = the setting has no value yet). It returns the value that the setting has afterwards.
func (s *resealer) Repin(ctx context.Context, setting, old, value string) (string, error) {
	if old == "" {
		return s.Pin(ctx, setting, value)
	}
	if _, err := s.db.ExecContext(ctx, settingMove, setting, old, value); err != nil {
		return "", wrap("change setting "+setting, err)
	}
	return s.Pin(ctx, setting, "")
}

// Definitions returns definitions in the order of their digests: only those whose digest is greater
// than the parameter `after`, and no more than the parameter `limit` says.
func (s *resealer) Definitions(ctx context.Context, after string, limit int) ([]store.Definition, error) {
	rows, err := s.db.QueryContext(ctx, definitionList, after, limit)
	if err != nil {
		return nil, wrap("list definitions", err)
	}
	defer rows.Close()
	var out []store.Definition
	for rows.Next() {
		var d store.Definition
		if err := rows.Scan(&d.Digest, &d.Data); err != nil {
			return nil, wrap("list definitions", err)
		}
		out = append(out, d)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("list definitions", err)
	}
	return out, nil
}

// AllMessages returns all messages and all late replies of the given runs.
func (s *resealer) AllMessages(ctx context.Context, runs ...status.RunID) (messages []store.Message, late []store.LateReply, err error) {
	ids := make(pq.Int64Array, len(runs))
	for i, id := range runs {
		ids[i] = int64(id)
	}
	if messages, err = s.messages(ctx, ids); err == nil {
		late, err = s.late(ctx, ids)
	}
	if err != nil {
		return nil, nil, wrap("read messages and late replies", err)
	}
	return messages, late, nil
}

func (s *resealer) messages(ctx context.Context, ids pq.Int64Array) ([]store.Message, error) {
	rows, err := s.db.QueryContext(ctx, messagesOfRuns, ids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []store.Message
	for rows.Next() {
		var m store.Message
		if err := rows.Scan(&m.Run, &m.ID, &m.Data); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

func (s *resealer) late(ctx context.Context, ids pq.Int64Array) ([]store.LateReply, error) {
	rows, err := s.db.QueryContext(ctx, lateOfRuns, ids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []store.LateReply
	for rows.Next() {
		var l store.LateReply
		if err := rows.Scan(&l.Run, &l.Node, &l.Call, &l.Outcome, &l.Data); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, rows.Err()
}

// Reseal replaces data of one run in one transaction. If the run was removed, Reseal changes
// nothing and returns ErrStale. If Reseal has to replace rows of the journal, it first appends the
// row with the number d.Next to the journal. If the journal does not have exactly d.Next rows
// before that, Reseal changes nothing and returns ErrStale, too.
func (s *resealer) Reseal(ctx context.Context, d rekey.Resealed) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return wrap("seal a run again", err)
	}
	stale, err := reseal(ctx, tx, d)
	switch {
	case err != nil:
		return wrap("seal a run again", rolledBack(tx, err))
	case stale:
		return rolledBack(tx, store.ErrStale)
	}
	if err := tx.Commit(); err != nil {
		return wrap("seal a run again", err)
	}
	return nil
}

// reseal runs the statements that replace data of one run. The result `stale` is true if the run
// was removed, or if its journal does not have the expected rows. Then the caller must roll back.
func reseal(ctx context.Context, tx *sql.Tx, d rekey.Resealed) (stale bool, err error) {
	run := int64(d.Run)
	if _, err := tx.ExecContext(ctx, resealLock); err != nil {
		return false, err
	}
	var there bool
	if err := tx.QueryRowContext(ctx, resealRun, run).Scan(&there); err != nil || !there {
		return true, err
	}
	if len(d.Rows) > 0 {
		if n, err := affected(tx.ExecContext(ctx, resealNext, run, d.Next, d.At, d.Data)); err != nil || n == 0 {
			return true, err
		}
		var seq pq.Int32Array
		var data pq.ByteaArray
		for _, r := range d.Rows {
			seq, data = append(seq, r.Seq), append(data, r.Data)
		}
		if n, err := affected(tx.ExecContext(ctx, resealRows, run, seq, data)); err != nil || n != int64(len(d.Rows)) {
			return true, err
		}
		// Remove the snapshot: it contains the former tag of the last row that it covers.
		if _, err := tx.ExecContext(ctx, snapshotDrop, run); err != nil {
			return false, err
		}
	}
	if len(d.Messages) > 0 {
		var ids pq.Int64Array
		var data pq.ByteaArray
		for _, m := range d.Messages {
			ids, data = append(ids, int64(m.ID)), append(data, m.Data)
		}
		if _, err := tx.ExecContext(ctx, resealMessages, run, ids, data); err != nil {
			return false, err
		}
	}
	if len(d.Late) > 0 {
		var node, call pq.Int32Array
		var outcome pq.StringArray
		var data pq.ByteaArray
		for _, l := range d.Late {
			node, call, outcome, data = append(node, l.Node), append(call, l.Call), append(outcome, l.Outcome), append(data, l.Data)
		}
		if _, err := tx.ExecContext(ctx, resealLate, run, node, call, outcome, data); err != nil {
			return false, err
		}
	}
	return false, nil
}

// affected returns the number of rows that a statement has changed.
func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// ResealDefinition replaces the data of a definition.
func (s *resealer) ResealDefinition(ctx context.Context, digest string, data []byte) error {
	if _, err := s.db.ExecContext(ctx, definitionReseal, digest, data); err != nil {
		return wrap("seal a definition again", err)
	}
	return nil
}
