package sqlite

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

const (
	memberLapse = `UPDATE member SET lease_until = ?1 WHERE lease_until > ?1`
	memberJoin  = `INSERT INTO member (address, joined_at, lease_until) VALUES (?1, ?2, ?3)`
	fenceAdd    = `INSERT INTO fence (engine, writer) VALUES (?1, ?2)`
	memberRenew = `UPDATE member SET lease_until = ?3 WHERE engine = ?1 AND NOT dead AND lease_until > ?2`
	memberDead  = `SELECT engine FROM member WHERE dead OR lease_until <= ?1 ORDER BY engine`
	runDue      = `SELECT run_id, next_check FROM run WHERE state < 10 AND owner = ?1 AND next_check <= ?2 ORDER BY next_check, run_id LIMIT ?3`
	memberBury  = `UPDATE member SET dead = 1 WHERE engine = ?1 AND (dead OR lease_until <= ?2)`
	memberAlive = `SELECT EXISTS (SELECT 1 FROM member WHERE engine = ?1 AND NOT dead)`
	fenceDrop   = `DELETE FROM fence WHERE engine = ?1`
	memberLeave = `UPDATE member SET lease_until = ?2 WHERE engine = ?1 AND lease_until > ?2`
	// memberForget removes a dead member that owns no open run any more.
	memberForget = `DELETE FROM member WHERE engine = ?1 AND dead AND NOT EXISTS (SELECT 1 FROM run WHERE owner = ?1 AND state < 10)`
	memberCount  = `SELECT count(*) FROM member WHERE NOT dead AND lease_until > ?1`
	memberList   = `SELECT engine, address, joined_at, lease_until, dead FROM member ORDER BY engine`
	passTake     = `
INSERT INTO pass (name, not_before) VALUES (?1, ?3)
ON CONFLICT (name) DO UPDATE SET not_before = excluded.not_before WHERE not_before <= ?2`
	// runOverdue lists the overdue runs of all live members except the engine ?1. The query starts
	// with the table `member`, because that table has few rows.
	runOverdue = `
SELECT r.run_id FROM member m CROSS JOIN run r ON r.owner = m.engine
WHERE m.engine <> ?1 AND NOT m.dead AND m.lease_until > ?2 AND r.state < 10 AND r.next_check < ?3 ORDER BY r.next_check, r.run_id LIMIT ?4`
	// orphanList reads one page of the open runs of dead members and, if ?3 is true, of the runs
	// without an owner. A takeover of many runs reads page after page, so a page must not read all
	// runs. orphanList leaves out a run at rest (parked or compensation_failed, and next_check is
	// Never) in two cases: the run has no message, or store.MaxDeaths engines died with the run in
	// hand.
	orphanList = `
WITH o AS MATERIALIZED (SELECT engine FROM member WHERE dead UNION ALL SELECT 0 WHERE ?3)
SELECT r.run_id FROM o CROSS JOIN run r ON r.run_id IN (
  SELECT x.run_id FROM run x
  WHERE x.state < 10 AND x.owner = o.engine AND x.run_id > ?1
    AND NOT (x.state IN (6, 7) AND x.next_check >= 253402214400000000 AND (NOT EXISTS (SELECT 1 FROM inbox i WHERE i.run_id = x.run_id)
      OR EXISTS (SELECT 1 FROM suspect s WHERE s.run_id = x.run_id AND s.deaths >= 3)))
  ORDER BY x.run_id LIMIT ?2)
ORDER BY r.run_id LIMIT ?2`
)

// members is the part of a Store that records which engines are alive. It also records when
// the next scans may be made.
type members struct {
	*file
	// turns holds, for each engine, where its next page of Tick.Inbox begins.
	turns storekit.Rotation
}

// Join registers a new membership and returns its number.
func (s *members) Join(ctx context.Context, address string, lease time.Duration, writers int) (id store.EngineID, err error) {
	err = s.writeUnowned(ctx, "join", func(tx *tx) error {
		at := now()
		res, err := tx.exec(memberJoin, naming.CleanText(address), micros(at), micros(at.Add(lease)))
		if err != nil {
			return err
		}
		n, err := res.LastInsertId()
		if err != nil {
			return err
		}
		id = store.EngineID(n)
		for w := range writers {
			if _, err := tx.exec(fenceAdd, n, w); err != nil {
				return err
			}
		}
		return nil
	})
	return id, err
}

// Tick renews the lease and returns the work for the engine. It returns ErrLapsed if the lease
// has expired or the engine was declared dead.
func (s *members) Tick(ctx context.Context, id store.EngineID, lease time.Duration, limit int) (t store.Tick, err error) {
	err = s.writeUnowned(ctx, "tick", func(tx *tx) error {
		t = store.Tick{Now: now()}
		res, err := tx.exec(memberRenew, int64(id), micros(t.Now), micros(t.Now.Add(lease)))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			if err == nil {
				err = store.ErrLapsed
			}
			return err
		}
		err = tx.each(memberDead, []any{micros(t.Now)}, func(r row) error {
			var dead int32
			err := r.Scan(&dead)
			t.Dead = append(t.Dead, store.EngineID(dead))
			return err
		})
		if err != nil {
			return err
		}
		if t.Due, err = s.due(tx, id, t.Now, limit); err != nil {
			return err
		}
		if t.Unowned, err = s.due(tx, 0, t.Now, limit); err != nil {
			return err
		}
		if t.Next, err = nextInLine(tx, id, t.Now, limit); err != nil {
			return err
		}
		var keyed []status.RunID
		if keyed, t.Beaten, err = nextOfKeys(tx, id, t.Now, limit); err != nil {
			return err
		}
		t.Next = append(t.Next, keyed...)
		return tx.each(inboxRuns, []any{int64(id), micros(t.Now), limit, int64(s.turns.After(id))}, func(r row) error {
			var run int64
			err := r.Scan(&run)
			t.Inbox = append(t.Inbox, status.RunID(run))
			return err
		})
	})
	if err != nil {
		return store.Tick{}, err
	}
	s.turns.Shown(id, t.Inbox, limit)
	return t, nil
}

func (s *members) due(x *tx, owner store.EngineID, at time.Time, limit int) ([]store.DueRun, error) {
	var due []store.DueRun
	err := x.each(runDue, []any{int64(owner), micros(at), limit}, func(r row) error {
		var run, check int64
		err := r.Scan(&run, &check)
		due = append(due, store.DueRun{Run: status.RunID(run), NextCheck: fromMicros(check)})
		return err
	})
	return due, err
}

// Fence declares a member dead if its lease has expired. It reports whether the member is dead.
// No batch can be in flight at the same time, because only one transaction runs at a time.
func (s *members) Fence(ctx context.Context, id store.EngineID) (dead bool, err error) {
	err = s.write(ctx, "fence", func(tx *tx) error {
		dead, err = s.bury(tx, id)
		return err
	})
	return dead, err
}

// Leave ends the membership of an engine that stops in an orderly way. The engine then has no run
// in hand, so no death is counted for any of its runs.
func (s *members) Leave(ctx context.Context, id store.EngineID) error {
	return s.writeUnowned(ctx, "leave", func(tx *tx) error {
		if _, err := tx.exec(memberLeave, int64(id), micros(now())); err != nil {
			return err
		}
		if _, err := tx.exec(handDrop, int64(id)); err != nil {
			return err
		}
		_, err := s.bury(tx, id)
		return err
	})
}

func (s *members) bury(x *tx, id store.EngineID) (dead bool, err error) {
	if _, err := x.exec(memberBury, int64(id), micros(now())); err != nil {
		return false, err
	}
	var alive bool
	if err := x.row(memberAlive, int64(id)).Scan(&alive); err != nil || alive {
		return false, err
	}
	for _, query := range []string{fenceDrop, handBlame, handDrop, memberForget} {
		if _, err := x.exec(query, int64(id)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Pass reports whether the caller may make the named scan now. If the result is true, every further
// call for this scan returns false until the period has passed.
func (s *members) Pass(ctx context.Context, name string, period time.Duration) (ok bool, err error) {
	err = s.write(ctx, "pass", func(tx *tx) error {
		at := now()
		res, err := tx.exec(passTake, name, micros(at), micros(at.Add(period)))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		ok = n > 0
		return err
	})
	return ok && err == nil, err
}

// Members returns the live members, and the dead members that the store has not removed yet.
func (s *members) Members(ctx context.Context) (found []store.Member, err error) {
	at := now()
	err = s.query(ctx, "list engines", memberList, nil, func(r row) error {
		var (
			m             store.Member
			joined, until int64
			dead          bool
		)
		err := r.Scan(&m.Engine, &m.Address, &joined, &until, &dead)
		m.JoinedAt, m.LeaseUntil = fromMicros(joined), fromMicros(until)
		if m.Left = m.LeaseUntil.Sub(at); dead {
			m.Left = min(m.Left, 0)
		}
		found = append(found, m)
		return err
	})
	return found, err
}
