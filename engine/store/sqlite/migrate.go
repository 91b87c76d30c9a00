package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	versionTable = "schema_version"

	// schemaVersion is the version of the schema for which this binary was written. It is
	// the number of the last migration; a test compares them.
	schemaVersion = 22

	// applicationID marks a file as a file of this program. The first migration sets it.
	applicationID = 0x53414741
)

const (
	schemaObjects  = `SELECT count(*) FROM sqlite_schema`
	schemaOwner    = `SELECT application_id FROM pragma_application_id`
	schemaHas      = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'`
	schemaVersions = `SELECT coalesce(max(version_id), 0) FROM schema_version WHERE is_applied`
)

// version returns the version of the schema; 0 = the file is empty, or its first migration was
// interrupted. It returns an error for a database of another program.
func version(ctx context.Context, db *sql.DB) (v int64, err error) {
	var objects, owner, has int64
	if err := db.QueryRowContext(ctx, schemaObjects).Scan(&objects); err != nil || objects == 0 {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, schemaOwner).Scan(&owner); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, schemaHas).Scan(&has); err != nil {
		return 0, err
	}
	if has == 0 {
		return 0, errForeign
	}
	if err := db.QueryRowContext(ctx, schemaVersions).Scan(&v); err != nil {
		return 0, err
	}
	// The first migration sets the application id. If v is 0, that migration was interrupted,
	// so the id may be missing.
	if v > 0 && owner != applicationID {
		return 0, errForeign
	}
	return v, nil
}

// checkVersion returns an error if this binary cannot read the schema.
func checkVersion(ctx context.Context, db *sql.DB) error {
	have, err := version(ctx, db)
	if err != nil || have == schemaVersion {
		return err
	}
	return mismatch(have)
}

// migrationWait is how long a reader waits if the schema is too old. If two commands start
// at the same moment, one of them creates the file and migrates it. The other command must not
// refuse the unfinished schema. A test makes this time longer.
var migrationWait = 2 * time.Second

// awaitVersion returns an error if this binary cannot read the schema. It gives another
// process some time to migrate an old schema.
func awaitVersion(ctx context.Context, db *sql.DB) error {
	for ends := time.Now().Add(migrationWait); ; {
		err := checkVersion(ctx, db)
		var old *store.SchemaError
		if !errors.As(err, &old) || old.Have > old.Want || time.Now().After(ends) {
			return err
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func mismatch(have int64) error {
	hint := "engine apply brings it up to date"
	if have > schemaVersion {
		hint = "use a newer engine"
	}
	return &store.SchemaError{Store: "sqlite", Have: have, Want: schemaVersion, Hint: hint}
}

// migrate migrates an old schema, with one transaction for each migration. The process
// holds the file's lock.
func migrate(ctx context.Context, db *sql.DB) error {
	if have, err := version(ctx, db); err != nil || have == schemaVersion {
		return err
	}
	p, err := migrator(db)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func migrator(db *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	store, err := database.NewStore(database.DialectSQLite3, versionTable)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	p, err := goose.NewProvider("", db, dir, goose.WithStore(store), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}
