package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

const (
	slotList = `SELECT engine, most, slots, want, since, seen, until FROM quota_slot WHERE name = ?1`
	slotDrop = `DELETE FROM quota_slot WHERE name = ?1 AND (engine = ?2 OR until <= ?3)`
	slotPut  = `INSERT INTO quota_slot (name, engine, most, slots, want, since, seen, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`
	callList = `SELECT until, calls FROM quota_call WHERE name = ?1`
	callDrop = `DELETE FROM quota_call WHERE name = ?1 AND until = ?2`
	callPut  = `INSERT INTO quota_call (name, until, calls) VALUES (?1, ?2, ?3) ON CONFLICT (name, until) DO UPDATE SET calls = excluded.calls`
)

// shares is the part of a Store that divides the limits of agents among engines. It implements
// quota.Sharer.
type shares struct{ *file }

// ShareSlots implements quota.Sharer.
func (s *shares) ShareSlots(ctx context.Context, engine store.EngineID, ask quota.SlotAsk) (share quota.SlotShare, err error) {
	err = s.fenced(ctx, "share slots", engine, func(tx *tx) error {
		at := now()
		var rows []quota.SlotRow
		err := tx.each(slotList, []any{ask.Limit}, func(r row) error {
			var x quota.SlotRow
			var id, since, seen, until int64
			err := r.Scan(&id, &x.Most, &x.Slots, &x.Want, &since, &seen, &until)
			x.Engine, x.Since, x.Seen, x.Until = store.EngineID(id), fromMicros(since), fromMicros(seen), fromMicros(until)
			rows = append(rows, x)
			return err
		})
		if err != nil {
			return err
		}
		x, keep, answer := quota.Slots(rows, engine, ask, at)
		share = answer
		if _, err := tx.exec(slotDrop, ask.Limit, int64(engine), micros(at)); err != nil || !keep {
			return err
		}
		_, err = tx.exec(slotPut, ask.Limit, int64(engine), x.Most, x.Slots, x.Want, micros(x.Since), micros(x.Seen), micros(x.Until))
		return err
	})
	if err != nil {
		return quota.SlotShare{}, err
	}
	return share, nil
}

// TakeCalls implements quota.Sharer.
func (s *shares) TakeCalls(ctx context.Context, engine store.EngineID, ask quota.CallAsk) (grant quota.CallGrant, err error) {
	err = s.fenced(ctx, "take calls", engine, func(tx *tx) error {
		var rows []quota.CallRow
		err := tx.each(callList, []any{ask.Limit}, func(r row) error {
			var until int64
			var x quota.CallRow
			err := r.Scan(&until, &x.Calls)
			x.Until = fromMicros(until)
			rows = append(rows, x)
			return err
		})
		if err != nil {
			return err
		}
		changes, answer := quota.Calls(rows, ask, now())
		grant = answer
		for _, c := range changes {
			if c.Calls == 0 {
				_, err = tx.exec(callDrop, ask.Limit, micros(c.Until))
			} else {
				_, err = tx.exec(callPut, ask.Limit, micros(c.Until), c.Calls)
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

// fenced calls fn in a transaction that may write. If the engine was declared dead, it returns
// store.ErrFenced and does not call fn.
func (s *shares) fenced(ctx context.Context, what string, engine store.EngineID, fn func(*tx) error) error {
	return s.write(ctx, what, func(tx *tx) error {
		var alive bool
		if err := tx.row(memberAlive, int64(engine)).Scan(&alive); err != nil {
			return err
		}
		if !alive {
			return store.ErrFenced
		}
		return fn(tx)
	})
}
