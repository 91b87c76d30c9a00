package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	runExists = `SELECT EXISTS (SELECT 1 FROM run WHERE run_id = ?1)`
	inboxFind = `SELECT id FROM inbox WHERE run_id = ?1 AND dedup = ?2`
	inboxAdd  = `INSERT INTO inbox (run_id, at, kind, by, dedup, data) VALUES (?1, ?2, ?3, ?4, nullif(?5, ''), ?6)`
	// inboxSize returns the number of messages of a run and their bytes. It reads at most ?2
	// messages; a negative ?2 = all messages. To count the bytes, inboxSize reads only the length
	// of the data of each message.
	inboxSize = `SELECT count(*), coalesce(sum(size), 0) FROM (SELECT length(data) AS size FROM inbox WHERE run_id = ?1 LIMIT ?2)`
	inboxList = `SELECT id, at, kind, by, coalesce(dedup, ''), data FROM inbox WHERE run_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3`
	inboxDrop = `DELETE FROM inbox WHERE id = ?1 AND run_id = ?2`
	runEnded  = `SELECT EXISTS (SELECT 1 FROM run WHERE run_id = ?1 AND state >= 10)`
	// inboxRuns lists runs that have messages for the engine ?1: its own runs, and runs without an
	// owner. It returns one page, which begins after the run ?4. The query starts with the table
	// `inbox`, because that table has few rows. A run that has ended counts as a run without an
	// owner if its owner is not alive. inboxRuns leaves out a run at rest if store.MaxDeaths
	// engines died with the run in hand.
	inboxRuns = `
SELECT i.run_id FROM inbox i CROSS JOIN run r ON r.run_id = i.run_id
WHERE i.run_id > ?4
  AND NOT (r.state IN (6, 7) AND r.next_check >= 253402214400000000 AND EXISTS (SELECT 1 FROM suspect s WHERE s.run_id = i.run_id AND s.deaths >= 3))
  AND (r.owner IN (?1, 0)
  OR r.state >= 10 AND NOT EXISTS (SELECT 1 FROM member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > ?2))
GROUP BY i.run_id ORDER BY i.run_id LIMIT ?3`
	inboxAddressed = `
SELECT i.run_id FROM inbox i CROSS JOIN run r ON r.run_id = i.run_id CROSS JOIN member m ON m.engine = r.owner
WHERE r.state < 10 AND m.dead
  AND NOT (r.state IN (6, 7) AND r.next_check >= 253402214400000000 AND EXISTS (SELECT 1 FROM suspect s WHERE s.run_id = i.run_id AND s.deaths >= 3))
GROUP BY i.run_id ORDER BY min(i.id) LIMIT ?1`
)

// inbox is the part of a Store that keeps each message until a row of its run consumes it, or until
// Discard removes it.
type inbox struct {
	*file
	*waker
}

// Post puts a message into its run's inbox and returns the id of the message. If the inbox has a
// message with the same Dedup already, Post adds nothing and returns the id of that message. It
// also works in a store that was opened with Options.Beside. For the errors, see store.Inbox.
func (s *inbox) Post(ctx context.Context, m store.Message) (id store.MessageID, err error) {
	if err := m.Validate(); err != nil {
		return 0, err
	}
	if m.At.IsZero() {
		m.At = now()
	}
	fresh := false
	err = s.writeUnowned(ctx, "post message", func(tx *tx) error {
		var there bool
		if err := tx.row(runExists, int64(m.Run)).Scan(&there); err != nil {
			return err
		}
		if !there {
			return store.ErrNotFound
		}
		id, fresh, err = tx.post(m)
		return err
	})
	if err != nil {
		return 0, err
	}
	if fresh {
		s.hint()
	}
	return id, nil
}

// post puts a message into the inbox of a run that exists. If the inbox has a message with the same
// Dedup, post adds nothing, and the result `fresh` is false.
func (x *tx) post(m store.Message) (id store.MessageID, fresh bool, err error) {
	if m.Dedup != "" {
		var old int64
		err := x.row(inboxFind, int64(m.Run), m.Dedup).Scan(&old)
		if !errors.Is(err, sql.ErrNoRows) {
			return store.MessageID(old), false, err
		}
	}
	if m.Most > 0 || m.MostBytes > 0 {
		var waiting, size int64
		most := int64(m.Most)
		if most == 0 {
			most = -1
		}
		if err := x.row(inboxSize, int64(m.Run), most).Scan(&waiting, &size); err != nil {
			return 0, false, err
		}
		switch {
		case m.Most > 0 && waiting >= most:
			return 0, false, naming.ErrInboxFull
		case m.MostBytes > 0 && size+int64(len(m.Data)) > m.MostBytes:
			return 0, false, naming.ErrInboxBytes
		}
	}
	res, err := x.exec(inboxAdd, int64(m.Run), micros(m.At), int64(m.Kind), naming.CleanText(m.By), m.Dedup, m.Data)
	if err != nil {
		return 0, false, err
	}
	n, err := res.LastInsertId()
	return store.MessageID(n), true, err
}

// Messages returns the messages of a run whose ids are greater than the parameter `after`, in the
// order of arrival. It returns no more messages than the parameter `limit` says.
func (s *inbox) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	var out []store.Message
	err := s.query(ctx, "read messages", inboxList, []any{int64(run), int64(after), limit}, func(r row) error {
		var (
			m  = store.Message{Run: run}
			at int64
		)
		err := r.Scan(&m.ID, &at, &m.Kind, &m.By, &m.Dedup, &m.Data)
		m.At = fromMicros(at)
		out = append(out, m)
		return err
	})
	return out, err
}

// Discard removes messages of a run that has ended. It does nothing if the run has not ended.
func (s *inbox) Discard(ctx context.Context, run status.RunID, ids []store.MessageID) error {
	return s.write(ctx, "discard messages", func(tx *tx) error {
		var ended bool
		if err := tx.row(runEnded, int64(run)).Scan(&ended); err != nil || !ended {
			return err
		}
		return tx.consume(run, ids)
	})
}

// consume removes the messages with the given ids. It ignores the id of a message that does not
// belong to the run.
func (x *tx) consume(run status.RunID, ids []store.MessageID) error {
	for _, id := range ids {
		if _, err := x.exec(inboxDrop, int64(id), int64(run)); err != nil {
			return err
		}
	}
	return nil
}
