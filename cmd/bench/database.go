package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
)

// A database is a PostgreSQL database that the benchmark has created. It contains the engine's
// tables.
type database struct {
	dsn   *url.URL
	store *postgres.Store
	db    *sql.DB // connections for statements that do not belong to an engine
	admin *sql.DB // connections for making and dropping the database
	name  string
	pid   int // process id of the server's main process; 0 = not known yet
}

// makeDatabase creates a database on the PostgreSQL server whose address is in the parameter `dsn`.
// The method `close` of the result drops the database.
func makeDatabase(ctx context.Context, dsn, suffix string) (*database, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		// The DSN may hold a password, so the error does not repeat it.
		return nil, errors.New("postgres: the DSN must be of the form postgres://…")
	}
	d := &database{name: databasePrefix() + suffix}
	if d.admin, err = sql.Open("postgres", dsn); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if _, err := d.admin.ExecContext(ctx, `CREATE DATABASE `+d.name); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: make a database: %w", err), d.admin.Close())
	}
	own := *u
	own.Path = "/" + d.name
	d.dsn = &own
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), d.close())
	}
	return d, nil
}

func (d *database) open(ctx context.Context) (err error) {
	if _, _, err = postgres.Migrate(ctx, d.dsn.String()); err != nil {
		return err
	}
	if d.store, err = postgres.Open(ctx, d.dsn.String(), postgres.Options{}); err != nil {
		return err
	}
	d.db, err = sql.Open("postgres", d.dsn.String())
	return err
}

// close closes all connections and drops the database. It does so even if the benchmark was
// interrupted.
func (d *database) close() error {
	var errs error
	if d.db != nil {
		errs = errors.Join(errs, d.db.Close())
	}
	if d.store != nil {
		errs = errors.Join(errs, d.store.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := d.admin.ExecContext(ctx, `DROP DATABASE IF EXISTS `+d.name+` WITH (FORCE)`)
	return errors.Join(errs, err, d.admin.Close())
}

// exec runs statements outside a transaction. The parameter `doing` is a text that describes the
// statements in errors.
func (d *database) exec(ctx context.Context, doing string, statements ...string) error {
	for _, s := range statements {
		if _, err := d.db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	return nil
}

// arguments returns the database's address for the arguments of a command. The address has no
// password, because other users can read the arguments. The result `env` is the environment for
// the command, with the password.
func (d *database) arguments() (address string, env []string) {
	u := *d.dsn
	password, _ := u.User.Password()
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String(), append(os.Environ(), "PGPASSWORD="+password)
}

// findTool returns the path of a program of PostgreSQL, such as psql. It first looks in the
// server's own directory of programs, then in the directories of PATH.
func findTool(ctx context.Context, d *database, name string) (string, error) {
	var dir string
	if err := d.db.QueryRowContext(ctx, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&dir); err == nil {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

// psqlRead measures how long psql takes to read the open runs of an engine and their
// journals, from the start to the end of psql. The output is discarded.
func psqlRead(ctx context.Context, psql string, d *database, owner store.EngineID) (time.Duration, error) {
	address, env := d.arguments()
	open := fmt.Sprintf(`r.owner = %d AND r.state < 10`, owner)
	cmd := exec.CommandContext(ctx, psql, "--no-psqlrc", "--no-password", "--quiet", "--no-align", "--tuples-only",
		"--set=ON_ERROR_STOP=1", "--output="+os.DevNull,
		"--command=SELECT * FROM engine.run r WHERE "+open,
		"--command=SELECT j.* FROM engine.run r JOIN engine.journal j USING (run_id) WHERE "+open,
		address)
	cmd.Env = env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("psql: %w\n%s", err, out)
	}
	return time.Since(began), nil
}

// runs returns the number of runs in the database.
func (d *database) runs(ctx context.Context) (n int, err error) {
	if err := d.db.QueryRowContext(ctx, `SELECT count(*) FROM engine.run`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the runs: %w", err)
	}
	return n, nil
}

// databasePrefix returns the beginning of the names of the databases that this process creates.
func databasePrefix() string { return fmt.Sprintf("engine_bench_%d_", os.Getpid()) }
