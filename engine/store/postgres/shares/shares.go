// Package shares divides the limits of agents among the engines of a PostgreSQL database.
//
// In: a quota.SlotAsk or a quota.CallAsk of an engine. Out: the engine's part of the limit. The
// package writes only the tables quota, quota_slot and quota_call. Each answer is one transaction.
// The transaction locks the limit's row in quota, so that answers for the same limit come one after
// the other. It also locks a fence row of the engine, so that an engine that was declared dead gets
// nothing.
package shares

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

const (
	quotaLock = `
WITH own AS MATERIALIZED (SELECT 1 FROM engine.fence WHERE engine = $1 ORDER BY writer LIMIT 1 FOR KEY SHARE),
q AS MATERIALIZED (SELECT 1 FROM engine.quota WHERE name = $2 FOR NO KEY UPDATE)
SELECT EXISTS (SELECT FROM own), EXISTS (SELECT FROM q)`
	quotaAdd = `INSERT INTO engine.quota (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`
	// The first column of slotList and callList is the store's time. So each of the two statements
	// returns one row even if the limit has no rows. The other columns of that row are NULL.
	slotList = `
SELECT c.at, s.engine, s.most, s.slots, s.want, s.since, s.seen, s.until
FROM (SELECT pg_catalog.clock_timestamp() AS at) c LEFT JOIN engine.quota_slot s ON s.name = $1`
	// slotPut also removes the rows of other engines whose time `until` is in the past. Such rows
	// do not count any more.
	slotPut = `
WITH gone AS (DELETE FROM engine.quota_slot WHERE name = $1 AND engine <> $2 AND until <= $8)
INSERT INTO engine.quota_slot AS s (name, engine, most, slots, want, since, seen, until) VALUES ($1, $2, $3, $4, $5, $6, $8, $7)
ON CONFLICT (name, engine) DO UPDATE SET most = excluded.most, slots = excluded.slots, want = excluded.want,
  since = excluded.since, seen = excluded.seen, until = excluded.until`
	slotDrop = `DELETE FROM engine.quota_slot WHERE name = $1 AND (engine = $2 OR until <= $3)`
	callList = `
SELECT c.at, s.until, s.calls FROM (SELECT pg_catalog.clock_timestamp() AS at) c LEFT JOIN engine.quota_call s ON s.name = $1`
	callDrop = `DELETE FROM engine.quota_call WHERE name = $1 AND until = $2`
	callPut  = `
INSERT INTO engine.quota_call (name, until, calls) VALUES ($1, $2, $3) ON CONFLICT (name, until) DO UPDATE SET calls = excluded.calls`
)

// Shares implements quota.Sharer.
type Shares struct {
	// Begin begins a transaction.
	Begin func(context.Context) (*sql.Tx, error)
	// Explain adds the name of the failed operation to the text of an error.
	Explain func(what string, err error) error
}

var _ quota.Sharer = (*Shares)(nil)

// ShareSlots implements quota.Sharer.
func (s *Shares) ShareSlots(ctx context.Context, engine store.EngineID, ask quota.SlotAsk) (share quota.SlotShare, err error) {
	err = s.locked(ctx, "share slots", engine, ask.Limit, func(tx *sql.Tx) error {
		rows, now, err := slotRows(ctx, tx, ask.Limit)
		if err != nil {
			return err
		}
		row, keep, answer := quota.Slots(rows, engine, ask, now)
		share = answer
		if !keep {
			_, err = tx.ExecContext(ctx, slotDrop, ask.Limit, int64(engine), now)
			return err
		}
		_, err = tx.ExecContext(ctx, slotPut, ask.Limit, int64(engine), row.Most, row.Slots, row.Want, row.Since, row.Until, row.Seen)
		return err
	})
	if err != nil {
		return quota.SlotShare{}, err
	}
	return share, nil
}

// TakeCalls implements quota.Sharer.
func (s *Shares) TakeCalls(ctx context.Context, engine store.EngineID, ask quota.CallAsk) (grant quota.CallGrant, err error) {
	err = s.locked(ctx, "take calls", engine, ask.Limit, func(tx *sql.Tx) error {
		rows, now, err := callRows(ctx, tx, ask.Limit)
		if err != nil {
			return err
		}
		changes, answer := quota.Calls(rows, ask, now)
		grant = answer
		for _, c := range changes {
			if c.Calls == 0 {
				_, err = tx.ExecContext(ctx, callDrop, ask.Limit, c.Until)
			} else {
				_, err = tx.ExecContext(ctx, callPut, ask.Limit, c.Until, c.Calls)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return quota.CallGrant{}, err
	}
	return grant, nil
}

// locked calls fn in a transaction that has locked the limit and a fence row of the engine. The
// store removes the fence rows of an engine when it declares the engine dead. If no fence row is
// left, locked does not call fn, and returns store.ErrFenced.
func (s *Shares) locked(ctx context.Context, what string, engine store.EngineID, limit string, fn func(*sql.Tx) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return s.Explain(what, err)
	}
	if err = lock(ctx, tx, engine, limit); err == nil {
		err = fn(tx)
	}
	if err == nil {
		err = tx.Commit()
	} else if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
		err = errors.Join(err, e)
	}
	if err == nil || errors.Is(err, store.ErrFenced) {
		return err
	}
	return s.Explain(what, err)
}

// lock locks a fence row of the engine and the limit's row. If the limit's row is missing, lock
// adds this row. It returns store.ErrFenced if the engine has no fence row.
func lock(ctx context.Context, tx *sql.Tx, engine store.EngineID, limit string) error {
	for {
		var alive, known bool
		if err := tx.QueryRowContext(ctx, quotaLock, int64(engine), limit).Scan(&alive, &known); err != nil {
			return err
		}
		if !alive {
			return store.ErrFenced
		}
		if known {
			return nil
		}
		if _, err := tx.ExecContext(ctx, quotaAdd, limit); err != nil {
			return err
		}
	}
}

func slotRows(ctx context.Context, tx *sql.Tx, limit string) (list []quota.SlotRow, now time.Time, err error) {
	rows, err := tx.QueryContext(ctx, slotList, limit)
	if err != nil {
		return nil, now, err
	}
	defer rows.Close()
	for rows.Next() {
		var engine, most, slots, want sql.NullInt64
		var since, seen, until sql.NullTime
		if err := rows.Scan(&now, &engine, &most, &slots, &want, &since, &seen, &until); err != nil {
			return nil, now, err
		}
		if engine.Valid {
			list = append(list, quota.SlotRow{
				Engine: store.EngineID(engine.Int64), Most: int(most.Int64), Slots: int(slots.Int64), Want: int(want.Int64),
				Since: since.Time.UTC(), Seen: seen.Time.UTC(), Until: until.Time.UTC(),
			})
		}
	}
	return list, now.UTC(), rows.Err()
}

func callRows(ctx context.Context, tx *sql.Tx, limit string) (list []quota.CallRow, now time.Time, err error) {
	rows, err := tx.QueryContext(ctx, callList, limit)
	if err != nil {
		return nil, now, err
	}
	defer rows.Close()
	for rows.Next() {
		var until sql.NullTime
		var calls sql.NullInt64
		if err := rows.Scan(&now, &until, &calls); err != nil {
			return nil, now, err
		}
		if until.Valid {
			list = append(list, quota.CallRow{Until: until.Time.UTC(), Calls: int(calls.Int64)})
		}
	}
	return list, now.UTC(), rows.Err()
}
