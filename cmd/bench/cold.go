package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cold measures the time from the start of the process of `engine apply` to the start of the first
// step, and to the end of the process. It uses the real binary. Before the measurement, no agent
// process is running.
func (l processLab) cold(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	dir, err := os.MkdirTemp("", "engine-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	closing.add(func() error { return os.RemoveAll(dir) })
	src, err := source.ReadFile("workflow.hcl")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "workflow.hcl"), src, 0o644); err != nil {
		return fmt.Errorf("write the workflow: %w", err)
	}
	d, err := makeDatabase(ctx, l.dsn, "cold")
	if err != nil {
		return err
	}
	closing.add(d.close)
	for round := range l.p.colds {
		for _, c := range []struct{ row, dsn string }{
			{"cold/sqlite", "sqlite:" + filepath.Join(dir, fmt.Sprintf("%d.db", round))},
			{"cold/postgres", d.dsn.String()},
		} {
			first, end, err := l.apply(ctx, dir, c.dsn)
			if err != nil {
				return fmt.Errorf("%s: %w", c.row, err)
			}
			l.book.put(round, c.row, "first step ms", milliseconds(first))
			l.book.put(round, c.row, "end ms", milliseconds(end))
		}
	}
	l.t.cold(l.book, l.p)
	return nil
}

// binary returns the path of a binary in the directory of the option -bin. It returns an error
// if the file does not exist.
func (l processLab) binary(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(l.bin, name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("find %s (make build makes it): %w", name, err)
	}
	return path, nil
}

// apply runs `engine apply`. It returns the time from the start of the process until the first
// step started, and the time until the process ended.
func (l processLab) apply(ctx context.Context, dir, dsn string) (first, end time.Duration, err error) {
	path, err := l.binary("engine")
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, path, "apply", dir, "--json", "--only", "--workflow=five", "--var=value="+strings.Repeat("x", payload), "--plugin-dir="+filepath.Dir(path))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ENGINE_DSN="+dsn)
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("start engine apply: %w", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if first == 0 && strings.Contains(lines.Text(), `"type":"attempt_started"`) {
			first = time.Since(began)
		}
	}
	err = cmd.Wait()
	end = time.Since(began)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("engine apply: %w\n%s", err, told.String())
	case first == 0:
		return 0, 0, errors.New("engine apply: no step started")
	}
	return first, end, nil
}
