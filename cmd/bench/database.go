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

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
)

// A database is one of the benchmark's own on a server, with the engine's
// tables in it.
type database struct {
	dsn   *url.URL
	store *postgres.Store
	db    *sql.DB // for all that an engine does not do
	admin *sql.DB
	name  string
	pid   int // of the server; 0 = not known yet
}

// makeDatabase makes a database; close drops it.
func makeDatabase(ctx context.Context, dsn, suffix string) (*database, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("postgres: the DSN must be of the form postgres://…") // the text may hold a password
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

// close drops the database, also where ctx has ended by now.
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

// exec runs statements that are not worth a transaction.
func (d *database) exec(ctx context.Context, doing string, statements ...string) error {
	for _, s := range statements {
		if _, err := d.db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	return nil
}

// arguments returns the database's address without its password, for the
// arguments of a command, which others can read, and the environment that has
// the password.
func (d *database) arguments() (address string, env []string) {
	u := *d.dsn
	password, _ := u.User.Password()
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String(), append(os.Environ(), "PGPASSWORD="+password)
}

// newPool makes a pool of the mock agent's processes. Calls go in batches over
// one stream for each process, or each over a stream of its own.
func newPool(w *work, unary bool, procs *processes) *agents.Pool {
	return agents.NewPool(agents.Options{Catalog: w.catalog, Observer: procs, Unary: unary})
}

// findTool finds a program of PostgreSQL: the server's own if it stands on this
// machine, else the one in PATH.
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

// psqlRead measures how long psql takes to read the open runs of an engine and
// their journals into nothing, from its start to its end.
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
