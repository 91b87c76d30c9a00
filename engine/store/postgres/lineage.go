package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
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
	// serverIdentityPooled reads the same fields as serverIdentity. It does not change the
	// settings of the session, because a pooler may give the session to another client. The
	// store uses it until it knows that there is no pooler.
	serverIdentityPooled = `
SELECT pg_catalog.pg_is_in_recovery(),
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int8 ELSE 0 END,
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::int8 ELSE 0 END,
       coalesce((pg_catalog.pg_last_wal_replay_lsn() - '0/0')::int8, 0),
       (SELECT system_identifier FROM pg_catalog.pg_control_system()), NULL`
	// journalWriter returns the token of the commit that stored a journal row. It returns 0 if
	// retention has removed the run of the row.
	journalWriter = `
SELECT writer FROM engine.journal WHERE run_id = $1::int8 AND seq = $2::int4
UNION ALL SELECT 0 FROM engine.setting
WHERE name = 'retained' AND value::int8 >= $1::int8 AND NOT EXISTS (SELECT FROM engine.run WHERE run_id = $1::int8)`
)

// An identity holds what a server reports about itself.
type identity struct {
	standby  bool
	system   int64 // number of the database cluster
	line     int64 // timeline; it rises with every promotion; 0 = a standby
	at       int64 // position at which the server's write-ahead log ends; 0 = a standby
	replayed int64 // log position at which the server was promoted; 0 = it started as the primary
	back     bool  // the server's log ends before a position that was confirmed on the same timeline
}

// A mark names a journal row whose commit a server has confirmed.
type mark struct {
	run   status.RunID
	seq   int32
	token int64
}

// A lineage records to which server a store wrote last, and up to which log position that
// server has confirmed commits. With this information the store notices that confirmed
// commits are missing on a server. The reason may be that a standby without the last
// commits became the primary, that a backup was restored, or that the address leads to the
// former primary again.
type lineage struct {
	mu     sync.Mutex // protects following fields
	off    error      // why the server does not report its identity; nil = the server reports it
	system int64
	line   int64                    // the highest timeline seen so far
	known  int64                    // log position up to which commits on the highest timeline are confirmed
	marks  map[*Writer]mark         // the last confirmed row of each writer
	joined map[store.EngineID]int64 // for each engine of this store, the timeline on which it joined
	lost   *store.LossError
}

func newLineage() *lineage {
	return &lineage{marks: make(map[*Writer]mark), joined: make(map[store.EngineID]int64)}
}

// err returns a *store.LossError if the method `see` has found that the server lost commits.
// Otherwise it returns nil.
func (l *lineage) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	return nil
}

// disable records that the server does not report its identity.
func (l *lineage) disable(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off, l.line, l.known = why, 0, 0
}

// disabled returns why the server does not report its identity. It returns nil if the
// server reports it.
func (l *lineage) disabled() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off
}

// stale reports whether a connection leads to a server that was replaced since. The
// parameter `line` is the timeline that the server had when the connection was opened.
func (l *lineage) stale(line int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return line < l.line
}

// reached returns the highest timeline seen so far, and the log position up to which
// commits on it are confirmed. Call reached before you ask a server for the end of its log,
// because other connections continue to commit.
func (l *lineage) reached() (line, known int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line, l.known
}

// confirm records m as the last committed row of a writer. The parameter `line` is the
// timeline of the server that confirmed the row. If this server has been replaced, confirm
// records nothing and returns false, because the confirmation does not count.
func (l *lineage) confirm(w *Writer, line int64, m mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line < l.line {
		return false
	}
	l.marks[w] = m
	return true
}

// forget removes the mark of a closed writer.
func (l *lineage) forget(w *Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.marks, w)
}

// join records on which timeline an engine joined.
func (l *lineage) join(id store.EngineID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined[id] = l.line
}

func (l *lineage) leave(id store.EngineID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.joined, id)
}

// moved reports whether the server was replaced after an engine joined. If so, the engine
// must read its runs again.
func (l *lineage) moved(id store.EngineID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, ok := l.joined[id]
	return ok && line != l.line
}

// ticked records that a server has confirmed a tick. The tick also confirms all commits
// before a log position, which is the parameter `at`. If the timeline of the tick is not the
// newest one, the server was replaced, and ticked returns false.
func (l *lineage) ticked(line, at int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line != l.line {
		return false
	}
	l.known = max(l.known, at)
	return true
}

// see compares the identity of a server with the lineage, and returns the timeline of the
// connection. The function `present` reports whether the server's journal has the row of a
// mark. If the store must not write to this server, see returns a
// *postgres.WrongServerError. If the server has lost confirmed commits, see returns no
// error, but from then on the method `err` returns the loss.
func (l *lineage) see(id identity, present func(mark) (bool, error)) (int64, error) {
	l.mu.Lock()
	if l.system == 0 && !id.standby {
		l.system, l.line = id.system, id.line
	}
	var missing []mark
	rises := !id.standby && id.system == l.system && id.line > l.line
	if rises {
		for _, m := range l.marks {
			missing = append(missing, m)
		}
	}
	l.mu.Unlock()

	var gone *mark
	for i := range missing {
		there, err := present(missing[i])
		if err != nil {
			return 0, err
		}
		if !there {
			gone = &missing[i]
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.system != 0 && id.system != l.system:
		return 0, &WrongServerError{Store: "postgres", Seen: l.line, Have: id.line, Reason: "it is another database cluster than before"}
	case id.standby:
		return l.line, nil // a standby accepts no writes, so it cannot confirm a commit
	case id.line < l.line:
		return 0, &WrongServerError{Store: "postgres", Seen: l.line, Have: id.line, Reason: "it was the primary until another one was promoted"}
	case id.line == l.line && id.back:
		l.lost = &store.LossError{Store: "postgres", From: l.line, To: id.line, Known: lsn(l.known), Switch: lsn(id.at)}
		l.known = id.at
		return id.line, nil
	case id.line > l.line:
		switch {
		case id.replayed != 0 && l.known > id.replayed:
			l.lost = &store.LossError{Store: "postgres", From: l.line, To: id.line, Known: lsn(l.known), Switch: lsn(id.replayed)}
		case gone != nil:
			l.lost = &store.LossError{Store: "postgres", From: l.line, To: id.line, Known: fmt.Sprintf("row %d of run %d", gone.seq, gone.run)}
			if id.replayed != 0 {
				l.lost.Switch = lsn(id.replayed)
			}
		}
		l.line, l.known = id.line, 0
		clear(l.marks)
	}
	return id.line, nil
}

// lsn formats a position in the write-ahead log like the server.
func lsn(at int64) string { return fmt.Sprintf("%X/%X", uint64(at)>>32, uint32(at)) }

// A wire is a connection of the driver that has all methods which this package needs.
type wire interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
	driver.Pinger
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// A checked is a connection of the driver. The identity of its server was compared with the
// lineage.
type checked struct {
	wire
	lineage *lineage
	line    int64
}

// ResetSession is called before the pool uses the connection again. If the server has been
// replaced, it returns driver.ErrBadConn, so that the pool closes the connection.
func (c *checked) ResetSession(ctx context.Context) error {
	if c.lineage.stale(c.line) {
		return driver.ErrBadConn
	}
	return c.wire.ResetSession(ctx)
}

// IsValid reports whether the pool may use the connection again. It returns false if the
// server was replaced.
func (c *checked) IsValid() bool { return !c.lineage.stale(c.line) && c.wire.IsValid() }

// A connector opens connections, and compares the identity of their servers with the
// lineage.
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
	out.line, err = c.s.lineage.see(id, func(m mark) (bool, error) { return stands(ctx, w, m) })
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return out, nil
}

// unidentified returns a connection to a server that does not report its identity. If the
// store may change the settings of its sessions, unidentified applies sessionSettings
// first.
func (c connector) unidentified(ctx context.Context, out *checked) (driver.Conn, error) {
	if !c.s.keeps() {
		return out, nil
	}
	if err := settleBare(ctx, out.wire); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// identify reads the identity of a server.
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

// stands reports whether the journal has the row of a mark, with the mark's token. It also
// returns true if retention has removed the run.
func stands(ctx context.Context, w wire, m mark) (bool, error) {
	values, err := first(ctx, w, 1, journalWriter, driver.NamedValue{Ordinal: 1, Value: int64(m.run)}, driver.NamedValue{Ordinal: 2, Value: int64(m.seq)})
	if unmigrated(err) || errors.Is(err, errNoRow) {
		return false, nil
	}
	return err == nil && (values[0] == m.token || values[0] == int64(0)), err
}

var errNoRow = errors.New("postgres: no row")

// first returns the first row of a query, which it runs on a connection of the driver. It
// returns errNoRow if the query has no row.
func first(ctx context.Context, w wire, columns int, query string, args ...driver.NamedValue) (values []driver.Value, err error) {
	rows, err := w.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values = make([]driver.Value, columns)
	if err := rows.Next(values); err != nil {
		return nil, errors.Join(errNoRow, err)
	}
	return values, nil
}

// lookAgain compares the identity of the server with the lineage again, on a connection
// that may be open already. A standby may have been promoted since the connection was
// opened.
func (s *access) lookAgain(ctx context.Context) (err error) {
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
		l.line, err = s.lineage.see(id, func(m mark) (bool, error) { return stands(ctx, l.wire, m) })
		return err
	})
}
