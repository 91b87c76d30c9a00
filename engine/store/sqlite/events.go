package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/store/events"
)

const (
	eventAdd  = `INSERT INTO event (id, type, data, sent_by, sent_at) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	eventNext = `SELECT seq, id, type, data, sent_by, sent_at, done, quarantined, lists, version FROM event
WHERE quarantined = '' AND claimed_until <= ?1 ORDER BY seq LIMIT ?2`
	eventClaim  = `UPDATE event SET claimed_until = ?2 WHERE seq = ?1`
	eventKeep   = `UPDATE event SET done = ?2, quarantined = ?3 WHERE seq = ?1`
	eventRemove = `DELETE FROM event WHERE seq = ?1`
	eventList   = `SELECT seq, id, type, data, sent_by, sent_at, done, quarantined, lists, version FROM event WHERE ?1 = 0 OR quarantined <> '' ORDER BY seq LIMIT ?2`
	eventRetry  = `UPDATE event SET quarantined = '', claimed_until = 0 WHERE id = ?1`

	eventRelease = `UPDATE event SET claimed_until = 0 WHERE seq = ?1`
	eventAdvance = `UPDATE event SET lists = ?3, version = version + 1 WHERE seq = ?1 AND version = ?2`
	keyFailed    = `INSERT INTO event_key (seq, workflow, key, error) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (seq, workflow, key) DO UPDATE SET error = ?4, waits = 0`
	keyStarted   = `DELETE FROM event_key WHERE seq = ?1 AND workflow = ?2 AND key = ?3`
	keyDrop      = `DELETE FROM event_key WHERE seq = ?1`
	keyRetry     = `UPDATE event_key SET waits = 1 WHERE seq = (SELECT seq FROM event WHERE id = ?1)`
	keyList      = `SELECT workflow, key, error, waits FROM event_key WHERE seq = ?1 AND (?2 = '' OR workflow = ?2) AND (?3 = 0 OR waits = 1)
ORDER BY workflow, key LIMIT ?4`
)

// eventbox is the part of a Store that keeps events. It implements events.Store. Its methods also
// work in a store that was opened with Options.Beside.
type eventbox struct{ *file }

// SendEvent stores an event.
func (s *eventbox) SendEvent(ctx context.Context, e events.Event) (sent bool, err error) {
	if err := e.Validate(); err != nil {
		return false, err
	}
	err = s.writeUnowned(ctx, "send an event", func(tx *tx) error {
		n, err := tx.changed(eventAdd, e.ID, e.Type, string(e.Data), e.By, micros(now()))
		sent = n > 0
		return err
	})
	return sent, err
}

// ClaimEvents returns events that wait, and claims them.
func (s *eventbox) ClaimEvents(ctx context.Context, limit int, lease time.Duration) (list []events.Event, err error) {
	// Most calls find no events. So first look for events with a query that only reads. Begin the
	// transaction that writes only if there are events.
	if err := s.query(ctx, "look for events", eventNext, []any{micros(now()), 1}, scanEvents(&list)); err != nil || len(list) == 0 {
		return nil, err
	}
	err = s.writeUnowned(ctx, "claim events", func(tx *tx) error {
		list = nil
		at := now()
		if err := tx.each(eventNext, []any{micros(at), limit}, scanEvents(&list)); err != nil {
			return err
		}
		for _, e := range list {
			if _, err := tx.exec(eventClaim, e.Seq, micros(at.Add(lease))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// scanEvents returns a function that reads an event from a row and adds it to the list.
func scanEvents(list *[]events.Event) func(row) error {
	return func(r row) error {
		var (
			e     events.Event
			at    int64
			done  string
			lists []byte
		)
		if err := r.Scan(&e.Seq, &e.ID, &e.Type, &e.Data, &e.By, &at, &done, &e.Quarantined, &lists, &e.Version); err != nil {
			return err
		}
		if err := e.DecodeLists(lists); err != nil {
			return err
		}
		e.At, e.Done = fromMicros(at), strings.Fields(done)
		if len(e.Done) == 0 {
			e.Done = nil
		}
		*list = append(*list, e)
		return nil
	}
}

// KeepEvent stores which workflows do not need the event any more. If `why` is not empty, it
// quarantines the event.
func (s *eventbox) KeepEvent(ctx context.Context, seq int64, done []string, why string) error {
	return s.writeUnowned(ctx, "keep an event", func(tx *tx) error {
		_, err := tx.exec(eventKeep, seq, strings.Join(done, " "), why)
		return err
	})
}

// RemoveEvents removes events from the inbox.
func (s *eventbox) RemoveEvents(ctx context.Context, seqs ...int64) error {
	return s.writeUnowned(ctx, "remove events", func(tx *tx) error {
		for _, seq := range seqs {
			if _, err := tx.exec(keyDrop, seq); err != nil {
				return err
			}
			if _, err := tx.exec(eventRemove, seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReleaseEvents ends the claims of events.
func (s *eventbox) ReleaseEvents(ctx context.Context, seqs ...int64) error {
	return s.writeUnowned(ctx, "release events", func(tx *tx) error {
		for _, seq := range seqs {
			if _, err := tx.exec(eventRelease, seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// AdvanceEvent stores how far engines have come with the keys of an event (events.Event.Lists).
func (s *eventbox) AdvanceEvent(ctx context.Context, e events.Event, p events.Page) (moved bool, err error) {
	lists, err := events.EncodeLists(p.Lists)
	if err != nil {
		return false, err
	}
	err = s.writeUnowned(ctx, "store what became of the keys of an event", func(tx *tx) error {
		n, err := tx.changed(eventAdvance, e.Seq, e.Version, string(lists))
		if moved = n > 0; err != nil || !moved {
			return err
		}
		for _, key := range p.Started {
			if _, err := tx.exec(keyStarted, e.Seq, p.Workflow, key); err != nil {
				return err
			}
		}
		for _, k := range p.Failed {
			if _, err := tx.exec(keyFailed, e.Seq, p.Workflow, k.Key, k.Error); err != nil {
				return err
			}
		}
		return nil
	})
	return moved && err == nil, err
}

// FailedKeys returns failed keys of an event.
func (s *eventbox) FailedKeys(ctx context.Context, f events.KeyFilter) (list []events.FailedKey, err error) {
	err = s.query(ctx, "list failed keys of an event", keyList, []any{f.Seq, f.Workflow, f.Waiting, f.Limit}, func(r row) error {
		var k events.FailedKey
		err := r.Scan(&k.Workflow, &k.Key, &k.Error, &k.Waits)
		list = append(list, k)
		return err
	})
	return list, err
}

// ListEvents returns the events in the inbox, the oldest first. If the parameter `quarantined` is
// true, it returns only quarantined events.
func (s *eventbox) ListEvents(ctx context.Context, quarantined bool, limit int) (list []events.Event, err error) {
	err = s.query(ctx, "list events", eventList, []any{quarantined, limit}, scanEvents(&list))
	return list, err
}

// RetryEvent makes an event wait again.
func (s *eventbox) RetryEvent(ctx context.Context, id string) (found bool, err error) {
	err = s.writeUnowned(ctx, "retry an event", func(tx *tx) error {
		n, err := tx.changed(eventRetry, id)
		if found = n > 0; err != nil || !found {
			return err
		}
		_, err = tx.exec(keyRetry, id)
		return err
	})
	return found, err
}
