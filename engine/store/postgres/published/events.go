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
UPDATE engine.events e SET claimed_until = pg_catalog.clock_timestamp() + $2::float8 * interval '1 microsecond'
FROM (SELECT seq FROM engine.events WHERE quarantined IS NULL AND claimed_until <= pg_catalog.clock_timestamp() ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED) x
WHERE e.seq = x.seq RETURNING e.seq, e.id, e.type, e.data, e.sent_by, e.sent_at, e.done, e.quarantined, e.lists, e.version`
	eventKeep   = `UPDATE engine.events SET done = $2, quarantined = nullif($3, '') WHERE seq = $1`
	eventRemove = `DELETE FROM engine.events WHERE seq = ANY ($1::int8[])`
	eventList   = `SELECT seq, id, type, data, sent_by, sent_at, done, quarantined, lists, version FROM engine.events WHERE NOT $1::bool OR quarantined IS NOT NULL ORDER BY seq LIMIT $2`
	eventRetry  = `
WITH e AS (
  UPDATE engine.events SET quarantined = NULL, claimed_until = '-infinity' WHERE id = $1 RETURNING seq
), k AS (
  UPDATE engine.event_key k SET waits = true FROM e WHERE k.seq = e.seq
)
SELECT pg_catalog.count(*) FROM e`
	eventRelease = `UPDATE engine.events SET claimed_until = '-infinity' WHERE seq = ANY ($1::int8[])`
	eventAdvance = `
WITH e AS (
  UPDATE engine.events SET lists = $3, version = version + 1 WHERE seq = $1 AND version = $2 RETURNING seq
), gone AS (
  DELETE FROM engine.event_key k USING e WHERE k.seq = e.seq AND k.workflow = $4 AND k.key = ANY ($5::text[])
), bad AS (
  INSERT INTO engine.event_key (seq, workflow, key, error)
  SELECT e.seq, $4, x, w FROM e, ROWS FROM (pg_catalog.unnest($6::text[]), pg_catalog.unnest($7::text[])) v(x, w)
  ON CONFLICT (seq, workflow, key) DO UPDATE SET error = excluded.error, at = excluded.at, waits = false
)
SELECT pg_catalog.count(*) FROM e`
	eventKeys = `
SELECT workflow, key, error, waits FROM engine.event_key WHERE seq = $1 AND ($2 = '' OR workflow = $2) AND (NOT $3::bool OR waits)
ORDER BY workflow, key LIMIT $4`
)

// Events implements events.Store in a PostgreSQL database.
type Events struct{ *Store }

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

// KeepEvent stores which workflows do not need the event any more. If the parameter `why` is not
// empty, KeepEvent also quarantines the event.
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

// ListEvents returns the events in the inbox, the oldest first. If the parameter `quarantined` is
// true, it returns only quarantined events.
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
			e     events.Event
			done  pq.StringArray
			why   sql.NullString
			lists []byte
		)
		if err := rows.Scan(&e.Seq, &e.ID, &e.Type, &e.Data, &e.By, &e.At, &done, &why, &lists, &e.Version); err != nil {
			return nil, s.Wrap(what, err)
		}
		if err := e.DecodeLists(lists); err != nil {
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

// RetryEvent ends the quarantine and the claim of an event, so that the event and its failed keys
// wait again.
func (s *Events) RetryEvent(ctx context.Context, id string) (bool, error) {
	n := 0
	err := s.DB().QueryRowContext(ctx, eventRetry, id).Scan(&n)
	return n > 0, s.wrapped("retry an event", err)
}

// AdvanceEvent stores how far engines have come with the keys of an event, and which keys failed.
func (s *Events) AdvanceEvent(ctx context.Context, e events.Event, p events.Page) (bool, error) {
	lists, err := events.EncodeLists(p.Lists)
	if err != nil {
		return false, err
	}
	started, keys, why := pq.StringArray{}, pq.StringArray{}, pq.StringArray{}
	started = append(started, p.Started...)
	for _, k := range p.Failed {
		keys, why = append(keys, k.Key), append(why, k.Error)
	}
	n := 0
	err = s.DB().QueryRowContext(ctx, eventAdvance, e.Seq, e.Version, string(lists), p.Workflow, started, keys, why).Scan(&n)
	return n > 0, s.wrapped("store what became of the keys of an event", err)
}

// ReleaseEvents ends the claims of events.
func (s *Events) ReleaseEvents(ctx context.Context, seqs ...int64) error {
	_, err := s.changed(ctx, eventRelease, pq.Int64Array(seqs))
	return s.wrapped("release events", err)
}

// FailedKeys returns failed keys of an event.
func (s *Events) FailedKeys(ctx context.Context, f events.KeyFilter) (list []events.FailedKey, err error) {
	rows, err := s.DB().QueryContext(ctx, eventKeys, f.Seq, f.Workflow, f.Waiting, f.Limit)
	if err != nil {
		return nil, s.Wrap("list failed keys of an event", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k events.FailedKey
		if err := rows.Scan(&k.Workflow, &k.Key, &k.Error, &k.Waits); err != nil {
			return nil, s.Wrap("list failed keys of an event", err)
		}
		list = append(list, k)
	}
	return list, s.wrapped("list failed keys of an event", rows.Err())
}
