// Command bench measures the engine: steps per second and latency of a run of
// five steps, on each store, with the mock agent in a real process, beside what
// the same machine does in single-row commits within the same minutes.
//
//	bench [-short] [-agents DIR] [-dsn postgres://…]
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

// limit ends a benchmark that hangs.
const limit = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	cancel()
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// plan is how long each measurement takes.
type plan struct {
	warm, steps, commits time.Duration
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	short := fs.Bool("short", false, "a glimpse: short measurements")
	dir := fs.String("agents", "bin", "`directory` of engine-agent-mock")
	dsn := fs.String("dsn", getenv("ENGINE_TEST_DSN"), "a PostgreSQL `server` to make a throw-away database on")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *dsn == "" {
		return errors.New("there is no PostgreSQL: run make bench, or name a server with -dsn")
	}
	p := plan{warm: time.Second, steps: 10 * time.Second, commits: 5 * time.Second}
	if *short {
		p = plan{warm: 500 * time.Millisecond, steps: 2 * time.Second, commits: time.Second}
	}
	wf, err := link(ctx, *dir)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "engine-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(temp)

	t := newTable(stdout)
	t.say("%d CPUs, %s/%s, %s; each row took %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), p.steps)
	t.head()
	for _, open := range []func() (*bed, error){
		func() (*bed, error) { return sqliteBed(ctx, temp) },
		func() (*bed, error) { return postgresBed(ctx, *dsn) },
	} {
		if err := measure(ctx, open, wf, p, t); err != nil {
			return err
		}
	}
	t.notes()
	return t.err
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
