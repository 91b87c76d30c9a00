package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/saga-engine/engine/engine/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	versionTable = "engine.schema_version"

	// migrateLock is the key of the advisory lock that allows only one migration at a time.
	// The number has no meaning.
	migrateLock = 7237102917305

	// schemaVersion is the version of the schema for which this binary was written. A test
	// checks that it is the number of the last migration.
	schemaVersion = 32
)

const (
	migratePatience = `SET LOCAL idle_in_transaction_session_timeout = 0`
	migrateAcquire  = `SELECT pg_catalog.pg_advisory_xact_lock($1)`
	schemaThere     = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'engine')`
	schemaCreate    = `CREATE SCHEMA engine`
	schemaVersions  = `SELECT coalesce(pg_catalog.max(version_id), 0) FROM engine.schema_version WHERE is_applied`
)

// Migrate migrates the schema to this binary's version, and returns the versions before and
// after. Each migration is one transaction, and an advisory lock allows only one caller at
// a time. If another role owns the schema or an object in it, Migrate does nothing and
// returns an error. If the schema is newer than this binary, Migrate returns a
// *store.SchemaError.
func Migrate(ctx context.Context, dsn string) (from, to int64, err error) {
	src, db, err := connect(ctx, dsn)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// The advisory lock belongs to a transaction. A lock of a session would be wrong behind
	// a pooler, because another client may get the session while it has the lock.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, src.unreachable(err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if _, err := tx.ExecContext(ctx, migratePatience); err != nil {
		return 0, 0, wrap("wait for another migration", err)
	}
	if _, err := tx.ExecContext(ctx, migrateAcquire, migrateLock); err != nil {
		return 0, 0, wrap("wait for another migration", err)
	}
	if err := ownSchema(ctx, db); err != nil {
		return 0, 0, err
	}
	if from, err = version(ctx, db); err != nil {
		return 0, 0, err
	}
	if from > schemaVersion {
		return from, from, src.mismatch(from)
	}
	p, err := provider(db)
	if err != nil {
		return from, from, err
	}
	if _, err := p.Up(ctx); err != nil {
		return from, from, wrap("migrate", err)
	}
	to, err = version(ctx, db)
	return from, to, err
}

// ownSchema creates the schema if it does not exist. Then it checks that no other role owns the
// schema or an object in it. Until this check the migration must read nothing from the schema,
// because another role may have created a view with the name of a table. ownSchema does not use
// CREATE SCHEMA IF NOT EXISTS. This statement needs a privilege on the database, even if the schema
// exists. The owner of the schema may not have this privilege.
func ownSchema(ctx context.Context, db *sql.DB) error {
	var there bool
	if err := db.QueryRowContext(ctx, schemaThere).Scan(&there); err != nil {
		return wrap("look for schema engine", err)
	}
	if !there {
		if _, err := db.ExecContext(ctx, schemaCreate); err != nil {
			return wrap("create schema engine", err)
		}
	}
	return ownedByUs(ctx, db)
}

// A SchemaStatus holds the version of the schema in a database, and the version that this
// binary needs.
type SchemaStatus struct {
	Have int64 // version of the schema in the database; 0 = no schema
	Want int64 // version for which this binary was written
}

// Status returns the version of the schema in a database, and the version that this binary
// needs.
func Status(ctx context.Context, dsn string) (_ SchemaStatus, err error) {
	_, db, err := connect(ctx, dsn)
	if err != nil {
		return SchemaStatus{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	have, err := version(ctx, db)
	return SchemaStatus{Have: have, Want: schemaVersion}, err
}

func connect(ctx context.Context, dsn string) (source, *sql.DB, error) {
	src, err := parse(dsn)
	if err != nil {
		return source{}, nil, err
	}
	db, err := src.open()
	if err != nil {
		return source{}, nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		return source{}, nil, errors.Join(src.unreachable(err), db.Close())
	}
	return src, db, nil
}

// provider returns an object that runs the migrations. Each migration is one transaction. The
// search path of this transaction is pg_catalog, pg_temp: see access.go.
func provider(db *sql.DB) (*goose.Provider, error) {
	store, err := database.NewStore(database.DialectPostgres, versionTable)
	if err != nil {
		return nil, wrap("read migrations", err)
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, wrap("read migrations", err)
	}
	var all []*goose.Migration
	for _, file := range files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, wrap("read migrations", err)
		}
		number, err := goose.NumericComponent(file)
		if err != nil {
			return nil, wrap("read migrations", err)
		}
		all = append(all, goose.NewGoMigration(number, &goose.GoFunc{RunTx: apply(file, string(text))}, nil))
	}
	p, err := goose.NewProvider("", db, nil, goose.WithStore(store), goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(all...))
	if err != nil {
		return nil, wrap("read migrations", err)
	}
	return p, nil
}

// apply returns a function that runs a migration. The function sends the whole file to the
// server, which runs the statements in order. The goose annotations in the file are
// comments for the server.
func apply(file, text string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, transactionPath); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", path.Base(file), err)
		}
		return nil
	}
}

// version returns the version of the schema; 0 = there is no schema.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	var v int64
	err := db.QueryRowContext(ctx, schemaVersions).Scan(&v)
	if unmigrated(err) {
		return 0, nil
	}
	if err != nil {
		return 0, wrap("read schema version", err)
	}
	return v, nil
}

// checkSchema returns an error if the server does not answer or the schema has another
// version.
func checkSchema(ctx context.Context, db *sql.DB, src source) error {
	if err := db.PingContext(ctx); err != nil {
		return src.unreachable(err)
	}
	have, err := version(ctx, db)
	if err != nil {
		return err
	}
	if have != schemaVersion {
		return src.mismatch(have)
	}
	return nil
}

func (s source) mismatch(have int64) *store.SchemaError {
	hint := fmt.Sprintf("run engine db migrate --dsn '%s'", s)
	if have > schemaVersion {
		hint = "use a newer engine"
	}
	return &store.SchemaError{Store: "postgres", Have: have, Want: schemaVersion, Hint: hint}
}
