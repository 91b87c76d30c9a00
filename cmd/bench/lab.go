package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A lab is what every part measures with.
type lab struct {
	dsn      string // of a server
	bin      string // directory of binaries
	p        plan
	rows     *regexp.Regexp // what is measured in turn
	tuned    bool           // the server is ours
	work     *work
	book     *book
	t        *table
	progress io.Writer
	prof     *profiler
	idling   *idling // nil = nobody wants to know
}

// A part is a group of measurements that can be asked for alone.
type part struct {
	name    string
	measure func(*lab, context.Context) error
}

func parts() []part {
	return []part{
		{"steps", (*lab).steps},
		{"saga", (*lab).saga},
		{"shapes", (*lab).shapes},
		{"tenants", (*lab).tenants},
		{"calls", (*lab).calls},
		{"long", (*lab).long},
		{"queue", (*lab).queue},
		{"recovery", (*lab).recovery},
		{"memory", (*lab).memory},
		{"cold", (*lab).cold},
		{"idle", (*lab).idle},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// chosen returns the parts of a list with commas; "" = all.
func chosen(list string) ([]part, error) {
	if list == "" {
		return parts(), nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(partNames(), name) {
			return nil, fmt.Errorf("-only %s: the parts are %s", name, strings.Join(partNames(), ", "))
		}
	}
	return slices.DeleteFunc(parts(), func(p part) bool { return !slices.Contains(names, p.name) }), nil
}

// measure makes the parts, and prints what their figures should have been. A
// part that fails does not keep the others from being measured.
func (l *lab) measure(ctx context.Context, wanted []part) (errs error) {
	if slices.ContainsFunc(wanted, func(p part) bool { return p.name == "idle" }) {
		l.idling = l.startIdling(ctx)
		defer func() { errs = errors.Join(errs, l.idling.closing.close()) }()
	}
	for _, p := range wanted {
		at := time.Now()
		if err := p.measure(l, ctx); err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", p.name, err))
			l.t.say("")
			l.t.say("%s: could not be measured: %v", p.name, err)
		}
		l.tell("%s took %s", p.name, time.Since(at).Round(time.Second))
		if ctx.Err() != nil {
			return errors.Join(errs, context.Cause(ctx))
		}
	}
	l.t.goals(l.book)
	return errs
}

// tell says how far the benchmark is.
func (l *lab) tell(format string, args ...any) {
	// Nobody who measures minds whether it can be read.
	_, _ = fmt.Fprintf(l.progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// onServer calls fn with a connection to the server.
func (l *lab) onServer(fn func(db *sql.DB) error) (err error) {
	db, err := sql.Open("postgres", l.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// heading says where the figures come from.
func (l *lab) heading(ctx context.Context) error {
	var version string
	err := l.onServer(func(db *sql.DB) error { return db.QueryRowContext(ctx, `SHOW server_version`).Scan(&version) })
	if err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	l.t.say("%d CPUs, %s/%s, %s, PostgreSQL %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), version)
	return nil
}
