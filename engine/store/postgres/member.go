package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// memberJoin inserts a member and its fence rows with one statement, and returns the
// member's number.
const memberJoin = `
WITH m AS (
  INSERT INTO engine.member (address, lease_until) VALUES ($1, pg_catalog.clock_timestamp() + $2::float8 * interval '1 second') RETURNING engine
), f AS (
  INSERT INTO engine.fence (engine, writer) SELECT m.engine, w FROM m, pg_catalog.generate_series(0, $3::int4 - 1) w
)
SELECT engine FROM m`

// members records which engines are alive, and when the next scans may be made.
type members struct {
	*access
	*waker
	minima minima
	head   queueHead
	turns  storekit.Rotation // for each engine, where its next page of Tick.Inbox begins
}

// Join registers a new membership and returns its number. It returns a *store.LossError if
// the server has lost commits.
func (s *members) Join(ctx context.Context, address string, lease time.Duration, writers int) (store.EngineID, error) {
	if err := s.lineage.err(); err != nil {
		return 0, err
	}
	var id store.EngineID
	err := s.db.QueryRowContext(ctx, memberJoin, naming.CleanText(address), lease.Seconds(), writers).Scan(&id)
	if err != nil {
		return 0, wrap("join", err)
	}
	s.lineage.join(id)
	return id, nil
}

// memberTick renews the lease of an engine and returns the work for the engine. The present time,
// with which it compares next_check, is in a scalar subquery. The server computes the subquery only
// once, so the time can limit an index scan. Without the subquery, the server would compute
// clock_timestamp() for each row, and the scan would read every open run of the owner.
//
// memberTick also returns a page of runs with waiting messages, after the run $4. The page has runs
// of this engine, runs without an owner, and ended runs whose owner is not alive. It leaves out
// runs that wait for a person and have too many deaths. $5 says after which next_check the scan for
// due runs begins (see minima); NULL = at the first entry of the index. $6 says the same for the
// scan for runs without an owner (see queueHead).
//
// The row 'starts' says that there may be work that starts runs or delivers replies (store.Tick).
// The row 'notice' says that a state of a run waits to be announced. So an idle engine needs no
// other statements to look for such work.
const (
	memberTick = `
WITH me AS (
  UPDATE engine.member SET lease_until = pg_catalog.clock_timestamp() + $2::float8 * interval '1 second'
  WHERE engine = $1 AND NOT dead AND lease_until > pg_catalog.clock_timestamp() RETURNING 1
)
SELECT 'alive' AS what, 0::int8 AS id, pg_catalog.clock_timestamp() AS at FROM me
UNION ALL SELECT 'dead', engine, lease_until FROM engine.member WHERE dead OR lease_until <= pg_catalog.clock_timestamp()
UNION ALL (SELECT 'wait', run_id, NULL FROM engine.place WHERE NOT admitted ORDER BY workflow, key, rank, run_id LIMIT 1)
UNION ALL (SELECT 'key', next_run, NULL FROM engine.context WHERE next_run IS NOT NULL ORDER BY next_run LIMIT 1)
UNION ALL (SELECT 'due', run_id, next_check FROM engine.run
           WHERE state < 10 AND owner = $1 AND next_check > coalesce($5::timestamptz, '-infinity') AND next_check <= (SELECT pg_catalog.clock_timestamp())
           ORDER BY next_check, run_id LIMIT $3)
UNION ALL (SELECT 'unowned', run_id, next_check FROM engine.run
           WHERE state < 10 AND owner = 0 AND next_check > coalesce($6::timestamptz, '-infinity') AND next_check <= (SELECT pg_catalog.clock_timestamp()) ORDER BY next_check, run_id LIMIT $3)
UNION ALL (SELECT 'inbox', i.run_id, pg_catalog.min(i.at) FROM engine.inbox i
           CROSS JOIN LATERAL (SELECT owner, state, next_check FROM engine.run WHERE run_id = i.run_id OFFSET 0) r
           WHERE i.run_id > $4
             AND NOT (r.state IN (6, 7) AND r.next_check = 'infinity' AND EXISTS (SELECT FROM engine.suspect x WHERE x.run_id = i.run_id AND x.deaths >= 3))
             AND (r.owner IN ($1, 0) OR r.state >= 10 AND NOT EXISTS (
             SELECT FROM engine.member m WHERE m.engine = r.owner AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp()))
           GROUP BY i.run_id ORDER BY i.run_id LIMIT $3)
UNION ALL (SELECT 'notice', run_id, NULL FROM engine.notice WHERE NOT done ORDER BY run_id, seq, state LIMIT 1)
UNION ALL SELECT 'starts', 0, NULL WHERE EXISTS (SELECT FROM engine.submission WHERE refused IS NULL)
  OR EXISTS (SELECT FROM engine.events WHERE quarantined IS NULL AND claimed_until <= (SELECT pg_catalog.clock_timestamp()))
  OR EXISTS (SELECT FROM engine.firing WHERE state = 'open' AND held_until <= (SELECT pg_catalog.clock_timestamp()))
  OR EXISTS (SELECT FROM engine.schedule WHERE NOT paused AND next_tick <= (SELECT pg_catalog.clock_timestamp()))
  OR EXISTS (SELECT FROM engine.reply WHERE NOT done AND sink > 'webhook:' AND sink < 'webhook;')
  OR EXISTS (SELECT FROM engine.reply WHERE NOT done AND sink > 'agent:' AND sink < 'agent;')`
	// memberTickLine does the same as memberTick. It also returns the timeline on which the
	// lease was renewed, and the present position in the server's log. When the renewal is
	// durable, the log is durable up to this position.
	memberTickLine = memberTick + `
UNION ALL SELECT 'line', ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int8, NULL FROM me
UNION ALL SELECT 'log', (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::int8, NULL FROM me`
)

// Tick renews the lease and returns the work for the engine. Tick returns ErrLapsed if the
// engine is not alive any more, or if a new server has replaced the former one and has all
// confirmed data. If the new server has lost confirmed data, Tick returns a
// *store.LossError. If the store must not write to the server, Tick returns a
// *postgres.WrongServerError.
func (s *members) Tick(ctx context.Context, id store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	if err := s.lineage.err(); err != nil {
		return store.Tick{}, err
	}
	query := memberTickLine
	if s.lineage.disabled() != nil {
		query = memberTick
	}
	began, waits := time.Now(), waiting{}
	from, first := s.minima.next(id), s.head.next(began)
	t, line, at, err := s.tick(ctx, query, &waits, int64(id), lease.Seconds(), limit, int64(s.turns.After(id)), from, first)
	if err != nil {
		return store.Tick{}, err
	}
	s.turns.Shown(id, t.Inbox, limit)
	if line != 0 && !s.lineage.ticked(line, at) {
		if err := s.identifyAgain(ctx); err != nil {
			return store.Tick{}, err
		}
	}
	if err := s.lineage.err(); err != nil {
		return store.Tick{}, err
	}
	if s.lineage.moved(id) {
		// Leave fences the engine now, so that other engines can take over its runs before
		// the lease expires.
		return store.Tick{}, errors.Join(store.ErrLapsed, s.Leave(ctx, id))
	}
	if waits.place {
		if t.Next, err = s.next(ctx, id, limit); err != nil {
			return store.Tick{}, err
		}
	}
	if waits.key {
		if err := s.nextOfKeys(ctx, id, limit, &t); err != nil {
			return store.Tick{}, err
		}
	}
	s.minima.scanned(id, from, t.Now, t.Due)
	took := time.Since(began)
	s.minima.took(id, from, took)
	s.head.scanned(began, took, first, t.Now, t.Unowned)
	t.Searched = true
	return t, nil
}

// waiting says whether a run may wait in line for a place, and whether a run may wait for its
// unique key.
type waiting struct{ place, key bool }

// tick runs memberTick or memberTickLine, and reads their result into `t` and `waits`. The results
// `line` and `pos` are the timeline and the position in the server's log; 0 for memberTick. tick
// returns ErrLapsed if the engine is not alive.
func (s *members) tick(ctx context.Context, query string, waits *waiting, args ...any) (t store.Tick, line, pos int64, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return store.Tick{}, 0, 0, wrap("tick", err)
	}
	defer rows.Close()
	alive := false
	for rows.Next() {
		var (
			what string
			n    int64
			when sql.NullTime
		)
		if err := rows.Scan(&what, &n, &when); err != nil {
			return store.Tick{}, 0, 0, wrap("tick", err)
		}
		at := when.Time.UTC()
		switch what {
		case "alive":
			alive, t.Now = true, at
		case "wait":
			waits.place = true
		case "key":
			waits.key = true
		case "starts":
			t.Starts = true
		case "notice":
			t.Notices = true
		case "line":
			line = n
		case "log":
			pos = n
		case "dead":
			t.Dead = append(t.Dead, store.EngineID(n))
		case "due":
			t.Due = append(t.Due, store.DueRun{Run: status.RunID(n), NextCheck: at})
		case "inbox":
			t.Inbox = append(t.Inbox, status.RunID(n))
		case "unowned":
			t.Unowned = append(t.Unowned, store.DueRun{Run: status.RunID(n), NextCheck: at})
		}
	}
	if err := rows.Err(); err != nil {
		return store.Tick{}, 0, 0, wrap("tick", err)
	}
	if !alive {
		return store.Tick{}, 0, 0, store.ErrLapsed
	}
	return t, line, pos, nil
}

const (
	// memberBury declares a member dead, if the member's lease has expired, and deletes the
	// member's fence rows. A commit in flight locks its fence row, so memberBury waits
	// until this commit has ended. For each open run that the member had in hand,
	// memberBury counts one more death.
	memberBury = `
WITH d AS (UPDATE engine.member SET dead = true WHERE engine = $1 AND (dead OR lease_until <= pg_catalog.clock_timestamp()) RETURNING engine),
h AS (DELETE FROM engine.hand h USING d WHERE h.engine = d.engine RETURNING h.runs),
s AS (INSERT INTO engine.suspect AS s (run_id, deaths)
  SELECT DISTINCT r.run_id, 1 FROM h, pg_catalog.unnest(h.runs) v(run_id) JOIN engine.run r USING (run_id) WHERE r.state < 10 ORDER BY r.run_id
  ON CONFLICT (run_id) DO UPDATE SET deaths = s.deaths + 1)
DELETE FROM engine.fence f USING d WHERE f.engine = d.engine`
	memberAlive = `SELECT EXISTS (SELECT FROM engine.member WHERE engine = $1 AND NOT dead)`
	memberLeave = `UPDATE engine.member SET lease_until = pg_catalog.clock_timestamp() WHERE engine = $1 AND lease_until > pg_catalog.clock_timestamp()`
	// memberForget deletes a dead member that owns no open runs. It is a separate
	// statement, because it must see the commits for which memberBury has waited.
	memberForget = `DELETE FROM engine.member m WHERE engine = $1 AND dead AND NOT EXISTS (SELECT FROM engine.run WHERE owner = $1 AND state < 10)`
	memberCount  = `SELECT pg_catalog.count(*) FROM engine.member WHERE NOT dead AND lease_until > pg_catalog.clock_timestamp()`
)

// Fence declares a member dead if the member's lease has expired. It reports whether the
// member is dead now.
func (s *members) Fence(ctx context.Context, id store.EngineID) (bool, error) {
	if _, err := s.db.ExecContext(ctx, memberBury, int64(id)); err != nil {
		return false, wrap("fence", err)
	}
	var alive bool
	if err := s.db.QueryRowContext(ctx, memberAlive, int64(id)).Scan(&alive); err != nil {
		return false, wrap("fence", err)
	}
	if alive {
		return false, nil
	}
	if _, err := s.db.ExecContext(ctx, memberForget, int64(id)); err != nil {
		return false, wrap("fence", err)
	}
	return true, nil
}

// Leave ends the membership of an engine that stops normally.
func (s *members) Leave(ctx context.Context, id store.EngineID) error {
	if _, err := s.db.ExecContext(ctx, memberLeave, int64(id)); err != nil {
		return wrap("leave", err)
	}
	if _, err := s.db.ExecContext(ctx, handDrop, int64(id)); err != nil {
		return wrap("leave", err)
	}
	s.lineage.leave(id)
	s.minima.forget(id)
	if _, err := s.Fence(ctx, id); err != nil {
		return err
	}
	// Send a hint, so that other engines take over the runs of this engine before their
	// next scan.
	if s.notifyNow() {
		s.notifyLate(ctx)
	}
	return nil
}

const (
	// passTake changes a row only if the period after the last permission is over. If
	// several callers run it at the same time, the row lock makes them run one after
	// another, and only the first changes the row.
	passTake = `
INSERT INTO engine.pass AS p (name, not_before) VALUES ($1, pg_catalog.clock_timestamp() + $2::float8 * interval '1 second')
ON CONFLICT (name) DO UPDATE SET not_before = excluded.not_before WHERE p.not_before <= pg_catalog.clock_timestamp()`
	// memberList lists the members. The last column is the rest of a member's lease in
	// seconds. For a dead member it is 0 or less.
	memberList = `SELECT engine, address, joined_at, lease_until, least(extract(epoch FROM lease_until - pg_catalog.clock_timestamp())::float8, CASE WHEN dead THEN 0 END) FROM engine.member ORDER BY engine`
)

// Pass reports whether the caller may now make the scan with this name. If the server gives
// the permission and its answer is lost, no engine makes the scan in this period.
func (s *members) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	res, err := s.db.ExecContext(ctx, passTake, name, period.Seconds())
	if err != nil {
		return false, wrap("ask for a pass", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, wrap("ask for a pass", err)
	}
	return n > 0, nil
}

// Members returns the live members, and the dead members that the store has not removed yet.
func (s *members) Members(ctx context.Context) ([]store.Member, error) {
	rows, err := s.db.QueryContext(ctx, memberList)
	if err != nil {
		return nil, wrap("list engines", err)
	}
	defer rows.Close()
	var out []store.Member
	for rows.Next() {
		var (
			m    store.Member
			left float64 // rest of the lease in seconds
		)
		if err := rows.Scan(&m.Engine, &m.Address, &m.JoinedAt, &m.LeaseUntil, &left); err != nil {
			return nil, wrap("list engines", err)
		}
		m.Left = time.Duration(left * float64(time.Second))
		m.JoinedAt, m.LeaseUntil = m.JoinedAt.UTC(), m.LeaseUntil.UTC()
		out = append(out, m)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("list engines", err)
	}
	return out, nil
}

// next returns the runs of an engine that are the next in line and for which a place is free. It
// returns no more runs than the parameter `most` says.
func (s *members) next(ctx context.Context, id store.EngineID, most int) ([]status.RunID, error) {
	rows, err := s.db.QueryContext(ctx, placeNext, int64(id), most)
	if err != nil {
		return nil, wrap("find runs that are next in line", err)
	}
	defer rows.Close()
	var next []status.RunID
	for rows.Next() {
		var run status.RunID
		if err := rows.Scan(&run); err != nil {
			return nil, wrap("find runs that are next in line", err)
		}
		next = append(next, run)
	}
	return next, wrapIf("find runs that are next in line", rows.Err())
}

// nextOfKeys looks for runs of an engine that wait for a unique key, if the run that took the key
// last has ended. If the key is free, nextOfKeys adds the waiting run to t.Next. If the ended run
// still holds the key, nextOfKeys adds the waiting run to t.Beaten. It adds at most `most` runs.
func (s *members) nextOfKeys(ctx context.Context, id store.EngineID, most int, t *store.Tick) error {
	rows, err := s.db.QueryContext(ctx, keyNext, int64(id), most)
	if err != nil {
		return wrap("find runs whose key is free", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			run, by status.RunID
			held    bool
		)
		if err := rows.Scan(&run, &by, &held); err != nil {
			return wrap("find runs whose key is free", err)
		}
		if held {
			t.Beaten = append(t.Beaten, naming.Beaten{Run: run, By: by})
		} else {
			t.Next = append(t.Next, run)
		}
	}
	return wrapIf("find runs whose key is free", rows.Err())
}
