package sqlite

import (
	"context"
	"encoding/json"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
)

const (
	settingMove      = `UPDATE setting SET value = ?3 WHERE name = ?1 AND value = ?2`
	definitionList   = `SELECT digest, data FROM definition WHERE digest > ?1 ORDER BY digest LIMIT ?2`
	definitionReseal = `UPDATE definition SET data = ?2 WHERE digest = ?1`
	journalReseal    = `UPDATE journal SET data = ?3 WHERE run_id = ?1 AND seq = ?2`
	// journalAdd appends a row to the journal of a run, and does not change the row of the run
	// itself. It does nothing if the journal has a row with this number already, or if the
	// previous row is missing. The new row has the token 0. No writer has this token, so no
	// writer believes that it has written the row.
	journalAdd = `
INSERT INTO journal (run_id, seq, at, writer, data) SELECT ?1, ?2, ?3, 0, ?4 WHERE EXISTS (SELECT 1 FROM journal WHERE run_id = ?1 AND seq = ?2 - 1)
ON CONFLICT (run_id, seq) DO NOTHING`
	inboxReseal = `UPDATE inbox SET data = ?3 WHERE run_id = ?1 AND id = ?2`
	lateReseal  = `UPDATE late_reply SET data = ?5 WHERE run_id = ?1 AND node = ?2 AND call = ?3 AND outcome = ?4`
	inboxOfRuns = `SELECT i.run_id, i.id, i.data FROM json_each(?1) e CROSS JOIN inbox i ON i.run_id = e.value ORDER BY i.id`
	lateOfRuns  = `
SELECT l.run_id, l.node, l.call, l.outcome, l.data FROM json_each(?1) e CROSS JOIN run r ON r.run_id = e.value
CROSS JOIN late_reply l ON l.run_id = r.run_id ORDER BY l.at, l.rowid`
)

// resealer is the part of a Store that replaces sealed data.
type resealer struct {
	*file
	*catalogue
}

// Repin replaces the value of a setting, but only if the present value equals the parameter `old`
// ("" = the setting has no value yet). It returns the value that the setting has afterwards.
func (s *resealer) Repin(ctx context.Context, setting, old, value string) (string, error) {
	if old == "" {
		return s.Pin(ctx, setting, value)
	}
	err := s.writeUnowned(ctx, "change setting "+setting, func(tx *tx) error {
		_, err := tx.exec(settingMove, setting, old, value)
		return err
	})
	if err != nil {
		return "", err
	}
	return s.Pin(ctx, setting, "")
}

// Definitions returns definitions in the order of their digests: only those whose digest is greater
// than the parameter `after`, and no more than the parameter `limit` says.
func (s *resealer) Definitions(ctx context.Context, after string, limit int) ([]store.Definition, error) {
	var out []store.Definition
	err := s.query(ctx, "list definitions", definitionList, []any{after, limit}, func(r row) error {
		var d store.Definition
		err := r.Scan(&d.Digest, &d.Data)
		out = append(out, d)
		return err
	})
	return out, err
}

// AllMessages returns all messages and all late replies of the given runs.
func (s *resealer) AllMessages(ctx context.Context, runs ...status.RunID) (messages []store.Message, late []store.LateReply, err error) {
	ids, err := json.Marshal(runs)
	if err != nil {
		return nil, nil, s.explain("read messages and late replies", err)
	}
	err = s.query(ctx, "read messages and late replies", inboxOfRuns, []any{string(ids)}, func(r row) error {
		var m store.Message
		err := r.Scan(&m.Run, &m.ID, &m.Data)
		messages = append(messages, m)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = s.query(ctx, "read messages and late replies", lateOfRuns, []any{string(ids)}, func(r row) error {
		var l store.LateReply
		err := r.Scan(&l.Run, &l.Node, &l.Call, &l.Outcome, &l.Data)
		late = append(late, l)
		return err
	})
	return messages, late, err
}

// Reseal replaces data of one run in one transaction. If the run was removed, Reseal changes
// nothing and returns ErrStale. If Reseal has to replace rows of the journal, it first appends the
// row with the number d.Next to the journal. If the journal does not have exactly d.Next rows
// before that, Reseal changes nothing and returns ErrStale, too.
func (s *resealer) Reseal(ctx context.Context, d rekey.Resealed) error {
	return s.write(ctx, "seal a run again", func(tx *tx) error {
		var there bool
		if err := tx.row(runExists, int64(d.Run)).Scan(&there); err != nil {
			return err
		}
		if !there {
			return store.ErrStale
		}
		if len(d.Rows) > 0 {
			n, err := tx.changed(journalAdd, int64(d.Run), int64(d.Next), micros(d.At), d.Data)
			if err != nil {
				return err
			}
			if n == 0 {
				return store.ErrStale
			}
			// Remove the snapshot: it contains the former tag of the last row that it covers.
			if _, err := tx.exec(snapshotDrop, int64(d.Run)); err != nil {
				return err
			}
		}
		for _, row := range d.Rows {
			n, err := tx.changed(journalReseal, int64(d.Run), int64(row.Seq), row.Data)
			if err != nil {
				return err
			}
			if n == 0 {
				return store.ErrStale
			}
		}
		for _, m := range d.Messages {
			if _, err := tx.exec(inboxReseal, int64(d.Run), int64(m.ID), m.Data); err != nil {
				return err
			}
		}
		for _, l := range d.Late {
			if _, err := tx.exec(lateReseal, int64(d.Run), l.Node, l.Call, l.Outcome, l.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// ResealDefinition replaces the data of a definition.
func (s *resealer) ResealDefinition(ctx context.Context, digest string, data []byte) error {
	return s.write(ctx, "seal a definition again", func(tx *tx) error {
		_, err := tx.exec(definitionReseal, digest, blob(data))
		return err
	})
}
