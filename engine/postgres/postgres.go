// Package postgres keeps runs in PostgreSQL: an insert-only journal, a narrow
// run row that is a fold of it, group commits of one statement each, and a
// fence row per writer that stops a dead engine. It obeys every rule of
// engine/storetest.
//
// Everything stands in the schema engine, which Migrate makes. The views
// engine.runs and engine.steps are for people.
//
// A DSN without an sslmode gets verify-full, or, where every host is a unix
// socket or a loopback address, disable; a weaker mode must be named. The
// environment variable PGSSLMODE counts as naming it.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine"
)

// Options of a Store. Zero fields mean defaults.
type Options struct {
	// MaxConns is how many connections beside those of writers may be open; 0 =
	// 8.
	MaxConns int
}

func (o Options) withDefaults() Options {
	if o.MaxConns == 0 {
		o.MaxConns = 8
	}
	return o
}

func (o Options) validate() error {
	if o.MaxConns < 0 {
		return errors.New("postgres: Options.MaxConns must not be negative")
	}
	return nil
}

// A Store is an engine.Store in a PostgreSQL database. It is safe for
// concurrent use; its writers are not.
type Store struct {
	source source
	db     *sql.DB       // everything but commits
	tokens atomic.Uint32 // last commit number; with the engine's number it is a token

	orphans walk
}

var _ engine.Store = (*Store)(nil)

// Open connects to a migrated database. Returns *engine.SchemaError if its
// schema does not fit this binary.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	src, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	db, err := src.open()
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	if err := checkSchema(ctx, db, src); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{source: src, db: db}, nil
}

// Close closes the connections of everything but the writers, which are
// closed by whoever opened them.
func (s *Store) Close() error { return s.db.Close() }

// sqlstate returns the SQLSTATE of a server's error, or "".
func sqlstate(err error) string {
	var e *pq.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return ""
}

// unmigrated reports an error that says that a schema or table is not there.
func unmigrated(err error) bool {
	state := sqlstate(err)
	return state == "3F000" || state == "42P01"
}

func wrap(what string, err error) error {
	return fmt.Errorf("postgres: %s: %w", what, err)
}
