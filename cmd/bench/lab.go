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

// A lab holds everything that the parts of the benchmark share.
type lab struct {
	dsn      string // address of the server
	bin      string // directory of the binaries
	p        plan
	rows     *regexp.Regexp // pattern of the rows to measure; only parts that call inTurn use it
	tuned    bool           // the benchmark may change the server's settings, because nothing else uses the server
	work     *work
	book     *book
	t        *table
	progress io.Writer
	prof     *profiler
	idling   []*idling // engines for the part "idle"; nil = this part is not measured
}

// Each of the following functions returns the lab as another type, which has the methods for
// one kind of measurement.

func (l *lab) runLab() runLab         { return runLab{l} }
func (l *lab) serverLab() serverLab   { return serverLab{l} }
func (l *lab) processLab() processLab { return processLab{l} }
func (l *lab) historyLab() historyLab { return historyLab{l} }
func (l *lab) startsLab() startsLab   { return startsLab{l} }

// A part is a group of measurements that the option -only can select.
type part struct {
	name    string
	measure func(*lab, context.Context) error
}

func parts() []part {
	return []part{
		{"steps", func(l *lab, ctx context.Context) error { return l.runLab().steps(ctx) }},
		{"saga", func(l *lab, ctx context.Context) error { return l.runLab().saga(ctx) }},
		{"shapes", func(l *lab, ctx context.Context) error { return l.runLab().shapes(ctx) }},
		{"tenants", func(l *lab, ctx context.Context) error { return l.runLab().tenants(ctx) }},
		{"calls", func(l *lab, ctx context.Context) error { return l.historyLab().calls(ctx) }},
		{"long", func(l *lab, ctx context.Context) error { return l.historyLab().long(ctx) }},
		{"loop", func(l *lab, ctx context.Context) error { return l.historyLab().loop(ctx) }},
		{"queue", func(l *lab, ctx context.Context) error { return l.historyLab().queue(ctx) }},
		{"submissions", func(l *lab, ctx context.Context) error { return l.startsLab().submissions(ctx) }},
		{"events", func(l *lab, ctx context.Context) error { return l.startsLab().events(ctx) }},
		{"replies", func(l *lab, ctx context.Context) error { return l.startsLab().replies(ctx) }},
		{"schedules", func(l *lab, ctx context.Context) error { return l.startsLab().schedules(ctx) }},
		{"recovery", func(l *lab, ctx context.Context) error { return l.historyLab().recovery(ctx) }},
		{"memory", func(l *lab, ctx context.Context) error { return l.processLab().memory(ctx) }},
		{"waits", func(l *lab, ctx context.Context) error { return l.processLab().waits(ctx) }},
		{"cold", func(l *lab, ctx context.Context) error { return l.processLab().cold(ctx) }},
		{"idle", func(l *lab, ctx context.Context) error { return l.processLab().idle(ctx) }},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// chosen returns the parts of the benchmark whose names are in the comma-separated list. It
// returns all parts if the list is "", and an error if the list has an unknown name.
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

// measure runs the wanted parts, and then prints the goals next to the figures. If a part
// fails, measure continues with the next part. It returns the errors of all parts.
func (l *lab) measure(ctx context.Context, wanted []part) (errs error) {
	if slices.ContainsFunc(wanted, func(p part) bool { return p.name == "idle" }) {
		l.idling = l.processLab().startIdling(ctx)
		defer func() {
			for _, i := range l.idling {
				errs = errors.Join(errs, i.closing.close())
			}
		}()
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

// tell prints a message about the progress of the benchmark.
func (l *lab) tell(format string, args ...any) {
	// An error of this output does not matter for the measurement.
	_, _ = fmt.Fprintf(l.progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// onServer connects to the database server, calls fn with the connection, and returns the error
// of fn. If it cannot connect or disconnect, it returns that error.
func (l *lab) onServer(fn func(db *sql.DB) error) (err error) {
	db, err := sql.Open("postgres", l.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// heading prints the machine and the versions of Go and PostgreSQL with which the benchmark
// measures.
func (l *lab) heading(ctx context.Context) error {
	var version string
	err := l.onServer(func(db *sql.DB) error { return db.QueryRowContext(ctx, `SHOW server_version`).Scan(&version) })
	if err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	l.t.say("%d CPUs, %s/%s, %s, PostgreSQL %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), version)
	return nil
}
