package published

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store/events"
)

const (
	eventAdd   = `INSERT INTO engine.events (id, type, data, sent_by) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	eventClaim = `
UPDATE engine.events e SET claimed_until = pg_catalog.clock_timestamp() + $2 * interval '1 microsecond'
FROM (SELECT seq FROM engine.events WHERE quarantined IS NULL AND claimed_until <= pg_catalog.clock_timestamp() ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED) x
WHERE e.seq = x.seq RETURNING e.seq, e.id, e.type, e.data, e.sent_by, e.sent_at, e.done, e.quarantined`
	eventKeep   = `UPDATE engine.events SET done = $2, quarantined = nullif($3, '') WHERE seq = $1`
	eventRemove = `DELETE FROM engine.events WHERE seq = ANY ($1::int8[])`
	eventList   = `SELECT seq, id, type, data, sent_by, sent_at, done, quarantined FROM engine.events WHERE NOT $1::bool OR quarantined IS NOT NULL ORDER BY seq LIMIT $2`
	eventRetry  = `UPDATE engine.events SET quarantined = NULL, claimed_until = '-infinity' WHERE id = $1`
)

// Events is the part of a PostgreSQL store that implements events.Store.
type Events struct{ *Part }

// SendEvent stores an event.
func (s *Events) SendEvent(ctx context.Context, e events.Event) (bool, error) {
	if err := e.Validate(); err != nil {
		return false, err
	}
	n, err := s.changed(ctx, eventAdd, e.ID, e.Type, string(e.Data), e.By)
	return n > 0, s.wrapped("send an event", err)
}

// ClaimEvents returns events that wait, and claims them.
func (s *Events) ClaimEvents(ctx context.Context, limit int, lease time.Duration) ([]events.Event, error) {
	list, err := s.list(ctx, "claim events", eventClaim, limit, lease.Microseconds())
	slices.SortFunc(list, func(a, b events.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, err
}

// KeepEvent stores which workflows need the event no more, and may quarantine it.
func (s *Events) KeepEvent(ctx context.Context, seq int64, done []string, why string) error {
	if done == nil {
		done = []string{}
	}
	_, err := s.changed(ctx, eventKeep, seq, pq.StringArray(done), why)
	return s.wrapped("keep an event", err)
}

// RemoveEvents removes events from the inbox.
func (s *Events) RemoveEvents(ctx context.Context, seqs ...int64) error {
	_, err := s.changed(ctx, eventRemove, pq.Int64Array(seqs))
	return s.wrapped("remove events", err)
}

// ListEvents returns the events in the inbox, the oldest first.
func (s *Events) ListEvents(ctx context.Context, quarantined bool, limit int) ([]events.Event, error) {
	return s.list(ctx, "list events", eventList, quarantined, limit)
}

func (s *Events) list(ctx context.Context, what, query string, args ...any) ([]events.Event, error) {
	rows, err := s.DB().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.Wrap(what, err)
	}
	defer rows.Close()
	var list []events.Event
	for rows.Next() {
		var (
			e    events.Event
			done pq.StringArray
			why  sql.NullString
		)
		if err := rows.Scan(&e.Seq, &e.ID, &e.Type, &e.Data, &e.By, &e.At, &done, &why); err != nil {
			return nil, s.Wrap(what, err)
		}
		e.At, e.Quarantined = e.At.UTC(), why.String
		if len(done) > 0 {
			e.Done = done
		}
		list = append(list, e)
	}
	return list, s.wrapped(what, rows.Err())
}

// RetryEvent makes an event wait again.
func (s *Events) RetryEvent(ctx context.Context, id string) (bool, error) {
	n, err := s.changed(ctx, eventRetry, id)
	return n > 0, s.wrapped("retry an event", err)
}
