// Package postgres keeps runs in PostgreSQL. Engines only insert rows into the journal. Only
// Reseal changes such rows, when the encryption key has changed. Each run has one small row with
// its present state. One statement commits many transitions. Each writer has a fence row. When an
// engine is declared dead, its fence rows are removed. Then the database commits nothing that this
// engine sends. The package obeys every rule of engine/store/storetest.
//
// All tables are in the schema `engine`, which Migrate creates. The views engine.runs and
// engine.steps are for people.
//
// A DSN without an sslmode gets verify-full, or disable if every host is a unix socket or a
// loopback address. A weaker mode must be set explicitly, in the DSN or in the environment
// variable PGSSLMODE.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/postgres/contexts"
	"github.com/saga-engine/engine/engine/store/postgres/firing"
	"github.com/saga-engine/engine/engine/store/postgres/outbox"
	"github.com/saga-engine/engine/engine/store/postgres/published"
	"github.com/saga-engine/engine/engine/store/postgres/shares"
	"github.com/saga-engine/engine/engine/store/quota"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/store/schedules"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// Options of a Store. Zero fields mean their defaults.
type Options struct {
	// MaxConns is how many connections the pools for queries of people and for the work of engines
	// have together; 0 = 8. Half of the connections, but at least one, are only for queries of
	// people, such as lists. The other half, but at least one, is only for the work of engines. So
	// with MaxConns = 1 these two pools have two connections.
	//
	// There are more connections: one of each writer, one of each call of Wakes, and those of the
	// pool for selections. That pool has as many connections as the pool for the work of engines.
	// Example: an engine with the defaults has 2 writers and calls Wakes once. So it has at most
	// 4 + 4 + 4 + 2 + 1 = 15 connections.
	MaxConns int
	Logger   *slog.Logger // receives what the store logs; nil = nothing is logged
}

func (o Options) withDefaults() Options {
	if o.MaxConns == 0 {
		o.MaxConns = 8
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	if o.MaxConns < 0 {
		return errors.New("postgres: Options.MaxConns must not be negative")
	}
	return nil
}

// A Store is a store.Store in a PostgreSQL database. A Store is safe for concurrent use,
// but its writers are not. It has one part for each role. All parts use the same access to
// the database.
type Store struct {
	*access
	*catalogue
	*members
	*inbox
	*runs
	*hands
	*published.Store
	*published.Intake
	*published.Events
	selections
	*evidence
	*views
	*shorts
	*retention
	*resealer
	*notices
	*heirs
	*outbox.Keeper
	*sharer
	*contexts.Contexts
	*waker
	*examiner
	tokens atomic.Uint32 // number of tokens so far; see Writer.token
}

var _ interface {
	store.Store
	store.Passes
	store.Hands
	store.Evidence
	store.Views
	store.Waker
	health.Examiner
	store.Retainer
	naming.Heirs
	rekey.Resealer
	notice.Keeper
	replies.Keeper
	schedules.Store
	events.Store
	intake.Store
	firings.Keeper
	quota.Sharer
	snapshots.Keeper
	goals.Keeper
} = (*Store)(nil)

// A selections implements firings.Keeper.
type selections struct{ store *firing.Store }

// Selections returns the role firings.Store of the store.
func (s selections) Selections() firings.Store { return s.store }

// sharer implements quota.Sharer.
type sharer = shares.Shares

// Open connects to a migrated database. It returns a *store.SchemaError if the schema does
// not fit this binary.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	src, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	s := newStore(&access{source: src, log: o.Logger, lineage: newLineage()})
	c, err := src.connector(dialer{})
	if err != nil {
		return nil, err
	}
	s.db, s.reads = sql.OpenDB(connector{c, s.access}), sql.OpenDB(connector{c, s.access})
	s.tables = sql.OpenDB(connector{c, s.access})
	if err := s.examineServer(ctx, o); err != nil {
		return nil, errors.Join(err, s.tables.Close(), s.reads.Close(), s.db.Close())
	}
	return s, nil
}

func newStore(a *access) *Store {
	w := &waker{access: a, probe: wakeProbe, probeEvery: wakeEvery}
	v := &views{access: a}
	c := &catalogue{access: a}
	publisher := &published.Store{DB: func() *sql.DB { return a.db }, Begin: a.begin, Wrap: wrap}
	return &Store{
		access: a, waker: w, views: v,
		catalogue:  c,
		members:    &members{access: a, waker: w},
		inbox:      &inbox{access: a, waker: w},
		runs:       &runs{access: a},
		hands:      &hands{access: a},
		notices:    &notices{access: a},
		heirs:      &heirs{access: a},
		Events:     &published.Events{Store: publisher},
		Contexts:   &contexts.Contexts{DB: func() *sql.DB { return a.reads }, Begin: a.begin, Wrap: wrapIf},
		Keeper:     &outbox.Keeper{Box: &outbox.Box{DB: func() *sql.DB { return a.db }, Explain: wrap}},
		Store:      publisher,
		Intake:     &published.Intake{Store: publisher},
		selections: selections{&firing.Store{DB: func() *sql.DB { return a.tables }, Wrap: wrap}},
		evidence:   &evidence{access: a, views: v},
		shorts:     &shorts{access: a},
		retention:  &retention{access: a},
		resealer:   &resealer{access: a, catalogue: c},
		sharer:     &sharer{Begin: a.begin, Explain: wrap},
		examiner:   &examiner{access: a},
	}
}

// readsIdle is how long the pools access.reads and access.tables keep an unused connection open.
const readsIdle = time.Minute

// examineServer returns an error if the server does not answer or the schema does not fit
// this binary. It looks for a pooler and sets the sizes of the pools.
func (s *Store) examineServer(ctx context.Context, o Options) error {
	s.db.SetMaxIdleConns(max(2, o.MaxConns))
	if err := checkSchema(ctx, s.db, s.source); err != nil {
		return err
	}
	pooled, err := detectPooler(ctx, s.db)
	if err != nil {
		return wrap("look for a pooler", err)
	}
	if pooled {
		s.behindPooler()
	} else {
		s.direct.Store(true)
	}
	reads := max(1, o.MaxConns/2)
	work := max(1, o.MaxConns-reads)
	s.db.SetMaxOpenConns(work)
	s.db.SetMaxIdleConns(work)
	s.reads.SetMaxOpenConns(reads)
	// Keep the connections open between queries. Otherwise queries of several people at the
	// same time would open a new connection for each query.
	s.reads.SetMaxIdleConns(reads)
	s.reads.SetConnMaxIdleTime(readsIdle)
	s.tables.SetMaxOpenConns(work)
	s.tables.SetMaxIdleConns(1)
	s.tables.SetConnMaxIdleTime(readsIdle)
	return nil
}

// Close closes the connections of the pools. A writer has its own Close. The connection of a call
// of Wakes is closed when its context ends.
func (s *Store) Close() error {
	s.bell.close()
	return errors.Join(s.tables.Close(), s.reads.Close(), s.db.Close())
}
