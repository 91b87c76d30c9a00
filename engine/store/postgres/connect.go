package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/lib/pq"
)

const (
	// serverIdentity reads the fields of the type `identity` from the server. It also applies
	// sessionSettings to the session.
	serverIdentity = `
SELECT pg_catalog.pg_is_in_recovery(),
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int8 ELSE 0 END,
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::int8 ELSE 0 END,
       coalesce((pg_catalog.pg_last_wal_replay_lsn() - '0/0')::int8, 0),
       (SELECT system_identifier FROM pg_catalog.pg_control_system()), ` + sessionSettings
	// serverIdentityPooled reads the same fields as serverIdentity, but does not change the
	// settings of the session, because a pooler may give the session to another client. The store
	// uses serverIdentityPooled behind a pooler, and also while it does not know yet whether there
	// is a pooler.
	serverIdentityPooled = `
SELECT pg_catalog.pg_is_in_recovery(),
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int8 ELSE 0 END,
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::int8 ELSE 0 END,
       coalesce((pg_catalog.pg_last_wal_replay_lsn() - '0/0')::int8, 0),
       (SELECT system_identifier FROM pg_catalog.pg_control_system()), NULL`
	// journalWriter returns the token of the commit that stored a journal row. Each commit has its
	// own token. The result is 0 if retention has removed the run of the row.
	journalWriter = `
SELECT writer FROM engine.journal WHERE run_id = $1::int8 AND seq = $2::int4
UNION ALL SELECT 0 FROM engine.setting
WHERE name = 'retained' AND value::int8 >= $1::int8 AND NOT EXISTS (SELECT FROM engine.run WHERE run_id = $1::int8)`
)

// A checked connection is a connection of the driver whose server was compared with the lineage.
// The lineage says to which server the store wrote last.
type checked struct {
	wire
	lineage *lineage
	line    int64
}

// ResetSession is called before the pool uses the connection again. If the server was replaced,
// ResetSession returns driver.ErrBadConn, so that the pool closes the connection.
func (c *checked) ResetSession(ctx context.Context) error {
	if c.lineage.stale(c.line) {
		return driver.ErrBadConn
	}
	return c.wire.ResetSession(ctx)
}

// IsValid reports whether the pool may use the connection again. It returns false if the
// server was replaced.
func (c *checked) IsValid() bool { return !c.lineage.stale(c.line) && c.wire.IsValid() }

// A connector opens connections. It checks that the server of each connection has the commits that
// the lineage records.
type connector struct {
	*pq.Connector
	s *access
}

// Connect opens a connection and checks the server. It returns a *postgres.WrongServerError
// if the store must not write to this server.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w, ok := inner.(wire)
	if !ok {
		return nil, errors.Join(fmt.Errorf("postgres: the driver's connections (%T) lack a method", inner), inner.Close())
	}
	out := &checked{wire: w, lineage: c.s.lineage}
	if c.s.lineage.disabled() != nil {
		return c.unidentified(ctx, out)
	}
	id, err := c.s.identify(ctx, w)
	switch state := sqlstate(err); {
	case state == "42501", state == "42883", state == "0A000":
		c.s.lineage.disable(err)
		return c.unidentified(ctx, out)
	case err != nil:
		return nil, errors.Join(err, w.Close())
	}
	out.line, err = c.s.lineage.see(id, func(m mark) (bool, error) { return hasRow(ctx, w, m) })
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return out, nil
}

// unidentified returns the connection `out`, whose server does not report its identity. If the
// store may change the settings of its sessions, unidentified applies sessionSettings first.
func (c connector) unidentified(ctx context.Context, out *checked) (driver.Conn, error) {
	if !c.s.keeps() {
		return out, nil
	}
	if err := applySettingsBare(ctx, out.wire); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

func (s *access) identify(ctx context.Context, w wire) (id identity, err error) {
	query := serverIdentity
	if !s.keeps() {
		query = serverIdentityPooled
	}
	line, known := s.lineage.reached()
	values, err := first(ctx, w, 6, query)
	if err != nil {
		return identity{}, err
	}
	for i, to := range []*int64{1: &id.line, 2: &id.at, 3: &id.replayed, 4: &id.system} {
		if n, ok := values[i].(int64); ok && to != nil {
			*to = n
		}
	}
	standby, ok := values[0].(bool)
	if !ok {
		return identity{}, fmt.Errorf("the server does not say whether it is a standby: %T", values[0])
	}
	id.standby = standby
	id.back = !standby && id.line == line && id.at < known
	return id, nil
}

// hasRow reports whether the journal still has the row to which the mark `m` points, with the same
// token. It also returns true if retention has removed the run.
func hasRow(ctx context.Context, w wire, m mark) (bool, error) {
	values, err := first(ctx, w, 1, journalWriter, driver.NamedValue{Ordinal: 1, Value: int64(m.run)}, driver.NamedValue{Ordinal: 2, Value: int64(m.seq)})
	if unmigrated(err) || errors.Is(err, errNoRow) {
		return false, nil
	}
	return err == nil && (values[0] == m.token || values[0] == int64(0)), err
}

// identifyAgain compares the identity of the server with the lineage again, on a connection
// that may be open already. A standby may have been promoted since the connection was
// opened.
func (s *access) identifyAgain(ctx context.Context) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return wrap("look at the server", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Raw(func(c any) error {
		l, ok := c.(*checked)
		if !ok {
			return nil
		}
		id, err := s.identify(ctx, l.wire)
		if err != nil {
			return wrap("look at the server", err)
		}
		l.line, err = s.lineage.see(id, func(m mark) (bool, error) { return hasRow(ctx, l.wire, m) })
		return err
	})
}
