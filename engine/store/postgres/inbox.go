package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	// messagePost inserts a message. If the run already has a message with the same text in the
	// column `dedup`, messagePost returns the id of that message. It uses DO UPDATE, because with
	// DO NOTHING it would not return a message that another session wrote meanwhile.
	//
	// The parameters $7 and $8 are bounds of the inbox; 0 = no bound. A new message must not exceed
	// them: the inbox may have at most $7 messages, and their data may have at most $8 bytes
	// together. If the message would exceed a bound, messagePost adds nothing and returns no row.
	// To find this out, it reads at most $7 messages; if $7 is 0, it reads all messages. To count
	// the bytes, it reads only the length of each message's data, which PostgreSQL stores with the
	// row. messagePost takes no lock on the inbox, so that sessions do not wait for each other. So
	// each session that posts at the same time may exceed the bounds by one message.
	messagePost = `
INSERT INTO engine.inbox AS i (run_id, at, kind, by, dedup, data)
SELECT $1::int8, coalesce($2::timestamptz, pg_catalog.clock_timestamp()), $3::int2, $4::text, nullif($5::text, ''), $6::bytea
FROM engine.run WHERE run_id = $1
  AND ($7::int8 = 0 AND $8::int8 = 0
    OR (SELECT ($7 = 0 OR pg_catalog.count(*) < $7) AND ($8 = 0 OR coalesce(pg_catalog.sum(size), 0) + coalesce(pg_catalog.octet_length($6), 0) <= $8)
      FROM (SELECT pg_catalog.octet_length(data) AS size FROM engine.inbox WHERE run_id = $1 LIMIT nullif($7, 0)) waiting)
    OR EXISTS (SELECT FROM engine.inbox WHERE run_id = $1 AND dedup = $5))
FOR KEY SHARE
ON CONFLICT (run_id, dedup) DO UPDATE SET kind = i.kind
RETURNING id, pg_catalog.pg_current_xact_id()::text`
	// messageRun says whether a run exists, and whether its inbox has $2 messages or more.
	messageRun = `
SELECT EXISTS (SELECT FROM engine.run WHERE run_id = $1),
  $2::int8 > 0 AND (SELECT pg_catalog.count(*) FROM (SELECT FROM engine.inbox WHERE run_id = $1 LIMIT $2) waiting) >= $2`
	messageList = `SELECT id, at, kind, by, coalesce(dedup, ''), data FROM engine.inbox WHERE run_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	// messageDiscard removes messages of a run, but only if the run has ended.
	messageDiscard = `
DELETE FROM engine.inbox i USING engine.run r
WHERE i.id = ANY ($2::int8[]) AND i.run_id = $1 AND r.run_id = $1 AND r.state >= 10`
)

// inbox keeps each message until a row of the message's run consumes it, or until Discard removes
// it.
type inbox struct {
	*access
	*waker
}

// Post puts a message into its run's inbox. If the server's answer to COMMIT is lost, Post asks the
// server whether the transaction was committed. So no message is stored twice. For the errors, see
// store.Inbox.
func (s *inbox) Post(ctx context.Context, m store.Message) (store.MessageID, error) {
	if err := m.Validate(); err != nil {
		return 0, err
	}
	var at sql.NullTime
	if !m.At.IsZero() {
		at = sql.NullTime{Time: m.At.Truncate(time.Microsecond), Valid: true}
	}
	var id int64
	err := s.once(ctx, "post a message", func(tx *sql.Tx) (string, error) {
		var xid string
		err := tx.QueryRowContext(ctx, messagePost, int64(m.Run), at, int64(m.Kind), naming.CleanText(m.By), m.Dedup, m.Data, int64(m.Most), m.MostBytes).Scan(&id, &xid)
		if noRows(err) {
			return "", s.unposted(ctx, tx, m)
		}
		if err == nil && s.notifyNow() {
			_, err = tx.ExecContext(ctx, wakeNotify)
		}
		return xid, err
	})
	if err != nil {
		return 0, err
	}
	return store.MessageID(id), nil
}

// unposted returns the reason why messagePost has added no message. If an engine takes messages
// between messagePost and unposted, unposted may return ErrInboxBytes although the number of
// messages was the reason. Both errors say that the inbox is full.
func (s *inbox) unposted(ctx context.Context, tx *sql.Tx, m store.Message) error {
	var there, many bool
	if err := tx.QueryRowContext(ctx, messageRun, int64(m.Run), int64(m.Most)).Scan(&there, &many); err != nil {
		return err
	}
	switch {
	case !there:
		return store.ErrNotFound
	case many || m.MostBytes == 0:
		return naming.ErrInboxFull
	}
	return naming.ErrInboxBytes
}

// Messages returns messages of a run, in the order of their ids. It returns only messages
// with an id greater than the parameter `after`. The parameter `limit` is the largest number of
// messages.
func (s *inbox) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	rows, err := s.db.QueryContext(ctx, messageList, int64(run), int64(after), limit)
	if err != nil {
		return nil, wrap("read messages", err)
	}
	defer rows.Close()
	var out []store.Message
	for rows.Next() {
		m := store.Message{Run: run}
		if err := rows.Scan(&m.ID, &m.At, &m.Kind, &m.By, &m.Dedup, &m.Data); err != nil {
			return nil, wrap("read messages", err)
		}
		m.At = m.At.UTC()
		out = append(out, m)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read messages", err)
	}
	return out, nil
}

// Discard removes messages of a run that has ended. It removes nothing if the run is open.
func (s *inbox) Discard(ctx context.Context, run status.RunID, ids []store.MessageID) error {
	list := make(pq.Int64Array, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	if _, err := s.db.ExecContext(ctx, messageDiscard, int64(run), list); err != nil {
		return wrap("discard messages", err)
	}
	return nil
}

// transactionStatus returns the status of a transaction: committed, aborted or in progress.
// It returns "" if the server does not know the transaction any more.
const transactionStatus = `SELECT coalesce(pg_catalog.pg_xact_status($1::xid8), '')`

// once commits one transaction, and never commits it twice. The function `write` runs the
// statements of the transaction and returns the transaction's id. If `write` returns an error, the
// transaction is rolled back. If the answer to COMMIT is lost, the method asks the server whether
// the transaction was committed. After a temporary error it runs the transaction again, but only if
// nothing was committed.
func (s *inbox) once(ctx context.Context, what string, write func(tx *sql.Tx) (xid string, err error)) error {
	for try := 0; ; try++ {
		if err := s.lineage.err(); err != nil {
			return err
		}
		if try > 0 {
			if err := backoff(ctx, try); err != nil {
				return err
			}
		}
		xid, err := s.attempt(ctx, write)
		if err == nil {
			return nil
		}
		if xid != "" && judge(err) == unknown {
			committed, e := s.settled(ctx, xid)
			switch {
			case e != nil:
				return fmt.Errorf("postgres: %s: outcome unknown: %w (last: %v)", what, e, err)
			case committed:
				return nil
			}
		}
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, naming.ErrInboxFull) {
			return err
		}
		if v := judge(err); ctx.Err() != nil || v != unknown && v != later || try >= maxTries {
			return wrap(what, err)
		}
	}
}

// attempt runs the transaction once and returns the transaction's id. If the id is "", it is
// certain that nothing was committed.
func (s *inbox) attempt(ctx context.Context, write func(tx *sql.Tx) (string, error)) (xid string, err error) {
	tx, err := s.begin(ctx)
	if err != nil {
		return "", err
	}
	if xid, err = write(tx); err != nil {
		return "", rolledBack(tx, err)
	}
	return xid, tx.Commit()
}

// settled waits until the server has ended a transaction, and then reports whether the
// transaction was committed. It waits, because the server may still be executing the
// transaction after the connection broke.
func (s *inbox) settled(ctx context.Context, xid string) (bool, error) {
	for try := 1; ; try++ {
		var status string
		err := s.db.QueryRowContext(ctx, transactionStatus, xid).Scan(&status)
		switch {
		case err == nil && status == "committed":
			return true, nil
		case err == nil && status == "aborted":
			return false, nil
		case err == nil && status == "":
			return false, errors.New("the server does not know the transaction")
		}
		if e := backoff(ctx, try); e != nil {
			return false, errors.Join(e, err)
		}
	}
}
