package postgres

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

const (
	// passTake changes a row only if the period after the last permission is over. If
	// several callers run it at the same time, the row lock makes them run one after
	// another, and only the first changes the row.
	passTake = `
INSERT INTO engine.pass AS p (name, not_before) VALUES ($1, pg_catalog.clock_timestamp() + $2::float8 * interval '1 second')
ON CONFLICT (name) DO UPDATE SET not_before = excluded.not_before WHERE p.not_before <= pg_catalog.clock_timestamp()`
	// runOverdue returns the most overdue runs of all live members except $1. For each of
	// these members, it reads the most overdue runs from the index run_active.
	runOverdue = `
SELECT o.run_id FROM engine.member m CROSS JOIN LATERAL (
  SELECT r.run_id, r.next_check FROM engine.run r
  WHERE r.state < 10 AND r.owner = m.engine AND r.next_check < (SELECT pg_catalog.clock_timestamp() - $2::float8 * interval '1 second')
  ORDER BY r.next_check, r.run_id LIMIT $3) o
WHERE m.engine <> $1 AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp()
ORDER BY o.next_check, o.run_id LIMIT $3`
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
