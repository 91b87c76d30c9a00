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

// settling is the time that an engine needs for its work after the start. Then the engine is
// idle.
const settling = 15 * time.Second

// An idling is an engine without runs, and a proxy that counts the statements that the engine
// sends to its database. The engine is the real binary with default options. It runs during the
// other parts of the benchmark, so the proxy counts for a long time. The engine needs so little
// CPU time that it does not slow down the other parts.
type idling struct {
	closing closers
	p       *proxy
	begun   time.Time // start of the counting
	before  [2]int64  // number of statements and number of pings before the time in the field `begun`
	err     error     // error of the start; nil = the engine runs
}

// startIdling starts the idle engine and its proxy, and waits until the engine is idle. It
// stores an error in the field `err`.
func (l processLab) startIdling(ctx context.Context) *idling {
	i := &idling{}
	i.err = func() error {
		d, err := makeDatabase(ctx, l.dsn, "idle")
		if err != nil {
			return err
		}
		i.closing.add(d.close)
		if i.p, err = listen(d.dsn.Host); err != nil {
			return err
		}
		i.closing.add(i.p.close)
		dsn := *d.dsn
		dsn.Host = i.p.address()
		query := dsn.Query()
		query.Set("sslmode", "disable") // the proxy cannot read encrypted statements
		dsn.RawQuery = query.Encode()
		stop, err := l.serve(ctx, &dsn)
		if err != nil {
			return err
		}
		i.closing.add(stop)
		if err := pause(ctx, settling); err != nil {
			return err
		}
		i.begun, i.before = time.Now(), i.p.counts()
		if i.before[0] == 0 {
			return errors.New("the engine never asked its database anything")
		}
		return nil
	}()
	return i
}

// idle records how many statements and pings the idle engine has sent per minute since
// startIdling returned.
func (l processLab) idle(ctx context.Context) error {
	i := l.idling
	if i.err != nil {
		return i.err
	}
	if err := pause(ctx, time.Until(i.begun.Add(l.p.idle))); err != nil {
		return err
	}
	took, after := time.Since(i.begun), i.p.counts()
	l.book.put(0, "idle", "statements/min", float64(after[0]-i.before[0])/took.Minutes())
	l.book.put(0, "idle", "pings/min", float64(after[1]-i.before[1])/took.Minutes())
	l.t.idle(l.book, took.Round(time.Second))
	return nil
}

// serve starts `engine serve` with the real binary. The function `stop` ends this process.
func (l processLab) serve(ctx context.Context, dsn *url.URL) (stop func() error, err error) {
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
