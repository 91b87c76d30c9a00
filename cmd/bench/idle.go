package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// settling is how long after its start an engine is not idle yet.
const settling = 15 * time.Second

// idle counts what an engine asks its database while there is nothing to do:
// the real binary, serving, with its defaults.
func (l *lab) idle(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	d, err := makeDatabase(ctx, l.dsn, "idle")
	if err != nil {
		return err
	}
	closing.add(d.close)
	p, err := listen(d.dsn.Host)
	if err != nil {
		return err
	}
	closing.add(p.close)
	dsn := *d.dsn
	dsn.Host = p.address()
	query := dsn.Query()
	query.Set("sslmode", "disable") // else there is nothing to be seen
	dsn.RawQuery = query.Encode()
	stop, err := l.serve(ctx, &dsn)
	if err != nil {
		return err
	}
	closing.add(stop)
	if err := pause(ctx, settling); err != nil {
		return err
	}
	before, pings := p.statements.Load(), p.pings.Load()
	if err := pause(ctx, l.p.idle); err != nil {
		return err
	}
	n := p.statements.Load() - before
	if before == 0 {
		return errors.New("the engine never asked its database anything")
	}
	l.book.put(0, "idle", "statements/min", float64(n)/l.p.idle.Minutes())
	l.book.put(0, "idle", "pings/min", float64(p.pings.Load()-pings)/l.p.idle.Minutes())
	l.t.idle(l.book, l.p)
	return nil
}

// serve starts the real binary, which stop ends.
func (l *lab) serve(ctx context.Context, dsn *url.URL) (stop func() error, err error) {
	path, err := l.binary("engine")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "engine-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, path, "serve", "--plugin-dir="+filepath.Dir(path))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ENGINE_DSN="+dsn.String())
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start engine serve: %w", err), os.RemoveAll(dir))
	}
	return func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("engine serve: %w", err)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}, nil
}
