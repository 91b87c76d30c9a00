// Command bench measures the engine: steps per second and latency of a run of
// five steps, on each store, with the mock agent in a real process, beside what
// the same machine does in single-row commits within the same minutes; and
// recovery on PostgreSQL: a Supervisor's scan next to finished runs, and the
// takeover of runs in flight beside psql that reads the same rows.
//
//	bench [-short] [-only steps|recovery] [-finished N] [-flight N] [-profile FILE] [-agents DIR] [-dsn postgres://…]
//
// `make bench` runs it with a private PostgreSQL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// plan is how long each measurement takes, and how much it is made of.
type plan struct {
	warm, steps, commits time.Duration

	finished int // runs that have ended, next to which a Supervisor looks for what is due
	scans    int // passes of it
	flight   int // runs in flight that are taken over
	rounds   int // takeovers of them

	profile string // file for a CPU profile of the takeovers; "" = none

	limit time.Duration // ends a benchmark that hangs
}

// whole is the plan of make bench.
func whole() plan {
	return plan{
		warm: time.Second, steps: 10 * time.Second, commits: 5 * time.Second,
		finished: 10_000_000, scans: 500, flight: 100_000, rounds: 3, limit: 30 * time.Minute,
	}
}

// glimpse is the plan of make bench SHORT=1.
func glimpse() plan {
	return plan{
		warm: 500 * time.Millisecond, steps: 2 * time.Second, commits: time.Second,
		finished: 300_000, scans: 100, flight: 5_000, rounds: 3, limit: 5 * time.Minute,
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	short := fs.Bool("short", false, "a glimpse: short measurements")
	dir := fs.String("agents", "bin", "`directory` of engine-agent-mock")
	only := fs.String("only", "", "measure only this `part`: steps or recovery")
	finished := fs.Int("finished", 0, "how many finished `runs` stand beside a scan and a takeover; 0 = as planned")
	flight := fs.Int("flight", 0, "how many `runs` are taken over; 0 = as planned")
	profile := fs.String("profile", "", "write a CPU profile of the takeovers to this `file`")
	dsn := fs.String("dsn", getenv("ENGINE_TEST_DSN"), "a PostgreSQL `server` to make a throw-away database on")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *dsn == "" {
		return errors.New("there is no PostgreSQL: run make bench, or name a server with -dsn")
	}
	p := whole()
	if *short {
		p = glimpse()
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	p.profile = *profile
	if *finished > 0 {
		p.finished = *finished
	}
	if *flight > 0 {
		p.flight = *flight
	}
	if *only != "" && *only != "steps" && *only != "recovery" {
		return fmt.Errorf("-only %s: there are steps and recovery", *only)
	}
	wf, err := link(ctx, *dir)
	if err != nil {
		return err
	}
	t := newTable(stdout)
	t.say("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if *short {
		t.say("A glimpse with smaller numbers: compare figures of the whole benchmark only.")
	}
	if *only != "recovery" {
		if err := steady(ctx, *dsn, wf, p, t); err != nil {
			return err
		}
	}
	if *only != "steps" {
		if err := recovery(ctx, *dsn, wf, p, t); err != nil {
			return err
		}
	}
	return t.err
}

// steady measures steps on each store.
func steady(ctx context.Context, dsn string, wf *workflow, p plan, t *table) error {
	temp, err := os.MkdirTemp("", "engine-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(temp)

	t.say("")
	t.head()
	for _, open := range []func() (*bed, error){
		func() (*bed, error) { return sqliteBed(ctx, temp) },
		func() (*bed, error) { return postgresBed(ctx, dsn) },
	} {
		if err := measure(ctx, open, wf, p, t); err != nil {
			return err
		}
	}
	t.notes(p)
	return nil
}

// measure runs everything on one store.
func measure(ctx context.Context, open func() (*bed, error), wf *workflow, p plan, t *table) (err error) {
	b, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	alone, err := b.commits(ctx, 1, p.commits)
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	many := alone
	if b.clients > 1 {
		if many, err = b.commits(ctx, b.clients, p.commits); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	e, err := start(ctx, b, wf)
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	if _, err := e.load(ctx, 64, p.warm); err != nil {
		return fmt.Errorf("%s: warm up: %w", b.name, err)
	}
	for _, inFlight := range []int{1, 64, 256} {
		r, err := e.load(ctx, inFlight, p.steps)
		if err != nil {
			return fmt.Errorf("%s: %d in flight: %w", b.name, inFlight, err)
		}
		yard, clients := alone, 1
		if inFlight > 1 {
			yard, clients = many, b.clients
		}
		t.row(b.name, inFlight, r, yard, clients)
	}
	return nil
}
