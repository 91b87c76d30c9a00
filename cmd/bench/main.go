// Command bench measures the engine. In the same minutes it measures pgbench, psql and a naive
// store on the same machine, to compare the engine with them. The figures are:
//   - end-to-end steps per second and latencies on each store, with the mock agent in a
//     process of its own;
//   - the costs of each step in commits, bytes of log and CPU time;
//   - ways to start runs, and the replies of runs;
//   - recovery, long queues, memory, waiting runs, a cold start and an idle engine.
//
// The last table compares the figures with the goals in goals.go.
//
//	bench [-short] [-only PART,…] [-rows PATTERN] [-rounds N] [-json FILE] [-profile FILE] [-bin DIR] [-tune] [-dsn postgres://…]
//
// The parts are steps, saga, shapes, tenants, calls, long, loop, queue, submissions, events,
// replies, schedules, recovery, memory, waits, cold, idle.
//
// `make bench` runs this command with a PostgreSQL server that nothing else uses. The command
// exits with 0 even if figures miss their goals, because times depend on the machine. Tests
// check the figures that do not depend on the machine.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/internal/procs"
	"github.com/saga-engine/engine/sdk/heap"
)

func main() {
	// The engine runs in this process, so the process gets the same settings as the command
	// `engine`.
	procs.Spare()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go heap.Pace(ctx, heap.EngineGrowth)
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

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	short := fs.Bool("short", false, "a glimpse: the main rows, measured briefly")
	bin := fs.String("bin", "bin", "`directory` of engine and engine-agent-mock")
	only := fs.String("only", "", "measure only these `parts`, with commas between them: "+strings.Join(partNames(), ", "))
	rows := new(regexp.Regexp)
	fs.TextVar(rows, "rows", regexp.MustCompile(""), "measure in turn only the rows that match this `pattern`")
	rounds := fs.Int("rounds", 0, "how often everything is measured in turn; 0 = as planned")
	finished := fs.Int("finished", 0, "how many finished `runs` stand beside a scan and a takeover; 0 = as planned")
	pending := fs.Int("flight", 0, "how many `runs` are taken over; 0 = as planned")
	profile := fs.String("profile", "", "write a CPU profile of the first part's engine to this `file`")
	raw := fs.String("json", "", "write every figure of every round to this `file`")
	tune := fs.Bool("tune", false, "let the server keep more log between two checkpoints, and turn its autovacuum off now and then: for a server that is ours alone")
	keep := fs.String("keep", "", "for the benchmark itself: say what runs take that are kept this `way`")
	kepts := fs.Int("kept", 0, "how many `runs` are kept in memory; 0 = as planned")
	dsn := fs.String("dsn", getenv("ENGINE_TEST_DSN"), "a PostgreSQL `server` to make throw-away databases on")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *keep != "" {
		w, err := link(ctx, *bin)
		if err != nil {
			return err
		}
		return kept(ctx, w, *keep, getenv(envKeep), *kepts, stdout)
	}
	wanted, err := chosen(*only)
	if err != nil {
		return err
	}
	if *dsn == "" {
		return errors.New("there is no PostgreSQL: run make bench, or name a server with -dsn")
	}
	p := whole()
	if *short {
		p = glimpse()
	}
	override(&p.rounds, *rounds)
	override(&p.finished, *finished)
	override(&p.pending, *pending)
	override(&p.kept, *kepts)
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()

	w, err := link(ctx, *bin)
	if err != nil {
		return err
	}
	l := &lab{dsn: *dsn, bin: *bin, p: p, rows: rows, work: w, book: &book{}, t: newTable(stdout), progress: stderr, prof: &profiler{path: *profile}}
	if *tune {
		if err := l.serverLab().tune(ctx); err != nil {
			return err
		}
		l.tuned = true
	}
	if err := l.heading(ctx); err != nil {
		return err
	}
	if *short {
		l.t.say("A glimpse with smaller numbers: compare figures of the whole benchmark only.")
	}
	err = l.measure(ctx, wanted)
	if *raw != "" {
		err = errors.Join(err, l.book.write(*raw))
	}
	return errors.Join(err, l.t.err)
}

// override replaces a planned number by the parameter `asked`, the number in an option. If
// `asked` is 0, the option was not given, and the planned number does not change.
func override(planned *int, asked int) {
	if asked > 0 {
		*planned = asked
	}
}

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

// measure runs the wanted parts, and then prints the goals next to the figures. If a part fails,
// measure continues with the next part. It returns the errors of all parts. If ctx ends, it runs no
// further part and prints no goals.
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
