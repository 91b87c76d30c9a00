package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/bench/internal/gauge"
	"github.com/saga-engine/engine/cmd/internal/pause"
)

// settling is the time that an engine needs for its work after the start. After this time the
// engine is idle.
const settling = 15 * time.Second

// An idling is an engine without runs, with a proxy that counts the statements that the engine
// sends to its database. The engine is the real binary with default options. The proxy counts
// during the other parts of the benchmark, so it counts for a long time. The engine needs so little
// CPU time that it does not slow down these parts.
type idling struct {
	row     string // name of the row with the figures of this engine
	closing closers
	p       *gauge.Proxy
	begun   time.Time // start of the counting
	// Numbers of statements and of pings that were sent before the time in the field `begun`.
	before [2]int64
	err    error // error of the start; nil = the engine runs
}

// startIdling starts two idle engines with their proxies, and waits until the engines are idle. The
// second engine has schedules whose next tick is far in the future. If an engine cannot start, the
// field `err` of its element says why.
func (l processLab) startIdling(ctx context.Context) []*idling {
	all := []*idling{{row: "idle"}, {row: "idle/schedules"}}
	for _, i := range all {
		i.err = l.launch(ctx, i)
	}
	err := pause.For(ctx, settling)
	for _, i := range all {
		if i.err != nil {
			continue
		}
		if i.err = err; err != nil {
			continue
		}
		i.begun, i.before = time.Now(), i.p.Counts()
		if i.before[0] == 0 {
			i.err = errors.New("the engine never asked its database anything")
		}
	}
	return all
}

// launch starts an idle engine and its proxy.
func (l processLab) launch(ctx context.Context, i *idling) error {
	d, err := makeDatabase(ctx, l.dsn, strings.ReplaceAll(i.row, "/", "_"))
	if err != nil {
		return err
	}
	i.closing.add(d.close)
	if i.row != "idle" {
		if err := publishTimetables(ctx, d, l.p.starts.schedules); err != nil {
			return err
		}
	}
	if i.p, err = gauge.Listen(d.dsn.Host); err != nil {
		return err
	}
	i.closing.add(i.p.Close)
	dsn := *d.dsn
	dsn.Host = i.p.Address()
	query := dsn.Query()
	query.Set("sslmode", "disable") // the proxy cannot read encrypted statements
	dsn.RawQuery = query.Encode()
	stop, err := l.serve(ctx, &dsn)
	if err != nil {
		return err
	}
	i.closing.add(stop)
	return nil
}

// idle records how many statements and pings the idle engines have sent per minute since
// startIdling returned.
func (l processLab) idle(ctx context.Context) error {
	for _, i := range l.idling {
		if i.err != nil {
			return fmt.Errorf("%s: %w", i.row, i.err)
		}
		if err := pause.For(ctx, time.Until(i.begun.Add(l.p.idle))); err != nil {
			return err
		}
		took, after := time.Since(i.begun), i.p.Counts()
		l.book.put(0, i.row, "statements/min", float64(after[0]-i.before[0])/took.Minutes())
		l.book.put(0, i.row, "pings/min", float64(after[1]-i.before[1])/took.Minutes())
		l.book.put(0, i.row, "seconds", took.Seconds())
	}
	l.t.idle(l.book, l.p)
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
