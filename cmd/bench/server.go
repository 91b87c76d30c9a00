package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// tune changes settings of the server, so that no checkpoint begins during a measurement of a
// few seconds. With the default settings, a checkpoint would begin approximately once a minute,
// during some of the measurements.
func (l serverLab) tune(ctx context.Context) error {
	err := l.configure(ctx, `ALTER SYSTEM SET max_wal_size = '4GB'`, `ALTER SYSTEM SET min_wal_size = '1GB'`)
	if err != nil {
		return fmt.Errorf("tune the server: %w", err)
	}
	return nil
}

// configure runs statements that change settings, and makes the server read its settings again.
func (l serverLab) configure(ctx context.Context, statements ...string) error {
	return l.onServer(func(db *sql.DB) error {
		for _, s := range append(statements, `SELECT pg_reload_conf()`) {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// stopAutovacuum is the method that turns autovacuum off, so that it does not slow down a measurement.
// The returned function `wake` turns autovacuum on again. If other programs may use the server
// (l.tuned is false), the method does nothing. Between measurements, the method `settle`
// vacuums instead.
func (l serverLab) stopAutovacuum(ctx context.Context) (wake func() error, err error) {
	if !l.tuned {
		return func() error { return nil }, nil
	}
	if err := l.configure(ctx, `ALTER SYSTEM SET autovacuum = off`); err != nil {
		return nil, fmt.Errorf("turn autovacuum off: %w", err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := l.configure(ctx, `ALTER SYSTEM RESET autovacuum`); err != nil {
			return fmt.Errorf("turn autovacuum on: %w", err)
		}
		return nil
	}, nil
}

// settle vacuums the benchmark's databases, and makes the server write all pending data to
// disk.
func (l serverLab) settle(ctx context.Context) error {
	names, err := l.databases(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.vacuum(ctx, name); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
	}
	err = l.onServer(func(db *sql.DB) error { _, err := db.ExecContext(ctx, `CHECKPOINT`); return err })
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// databases returns the names of the databases that this process has created and not dropped.
func (l serverLab) databases(ctx context.Context) (names []string, err error) {
	err = l.onServer(func(db *sql.DB) (err error) {
		rows, err := db.QueryContext(ctx, `SELECT datname FROM pg_database WHERE starts_with(datname, $1)`, databasePrefix())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return names, nil
}

func (l serverLab) vacuum(ctx context.Context, name string) (err error) {
	u, err := url.Parse(l.dsn)
	if err != nil {
		// The DSN may hold a password, so the error does not repeat it.
		return errors.New("the DSN is not a URL")
	}
	u.Path = "/" + name
	db, err := sql.Open("postgres", u.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `VACUUM (ANALYZE)`)
	return err
}
