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
// The parts are steps, saga, shapes, tenants, calls, long, loop, queue, submissions, events, replies,
// schedules, recovery, memory, waits, cold, idle.
//
// `make bench` runs this command with a PostgreSQL server that nothing else uses. The command
// exits with 0 even if figures miss their goals, because times depend on the machine. Tests
// check the figures that do not depend on the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
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
	go heap.Pace(ctx, heap.EngineRoom)
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
	flight := fs.Int("flight", 0, "how many `runs` are taken over; 0 = as planned")
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
	override(&p.flight, *flight)
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

// A plan says how long each measurement takes, and how many runs, steps or rows it has.
type plan struct {
	rounds int           // number of rounds in which all subjects of a part are measured in turn
	warm   time.Duration // time under the same load before each measurement
	each   time.Duration // length of each measurement

	scale  int           // size of pgbench's table, in units of 100,000 rows
	minute time.Duration // length of each of the five parts of the long measurement: one minute, or less with -short

	large int // number of calls of a large run in the part "shapes"

	queued     int           // number of runs in the queue: submitted, but without an owner
	queueLimit time.Duration // time after which no more runs are submitted
	claim      time.Duration // duration of a measurement in which an engine claims queued runs

	finished int // number of finished runs in the database during the scans of a Supervisor
	scans    int // number of measured scans of a Supervisor
	flight   int // number of runs in flight for the takeover
	takes    int // how many times an engine takes over all runs in flight, one takeover after the other

	loops  loopPlan  // numbers of iterations of the measured loops
	starts startPlan // sizes of the parts that measure how runs start

	waits waitPlan      // numbers of runs that wait for a signal or a time
	kept  int           // number of open runs that an engine holds in memory while their memory is measured
	colds int           // number of cold starts
	idle  time.Duration // shortest time in which the statements of an idle engine are counted

	limit time.Duration // time limit for the whole benchmark
}

// whole returns the plan of `make bench`.
func whole() plan {
	return plan{
		rounds: 3, warm: 2 * time.Second, each: 10 * time.Second, scale: 10, minute: time.Minute, large: 10_000,
		queued: 1_000_000, queueLimit: 15 * time.Minute, claim: 30 * time.Second,
		finished: 10_000_000, scans: 500, flight: 100_000, takes: 3,
		kept: 20_000, colds: 10, idle: 3 * time.Minute, limit: 2 * time.Hour,
		waits:  waitPlan{waiting: 100_000, timers: 10_000, signals: 20_000},
		loops:  loopPlan{short: 1_000, long: 100_000},
		starts: startPlan{rounds: 3, clients: []int{1, manyClients}, each: 5 * time.Second, events: 50_000, schedules: 10_000},
	}
}

// glimpse returns the plan of `make bench SHORT=1`.
func glimpse() plan {
	return plan{
		rounds: 2, warm: time.Second, each: 2 * time.Second, scale: 10, minute: 3 * time.Second, large: 1_000,
		queued: 10_000, queueLimit: 10 * time.Second, claim: 3 * time.Second,
		finished: 300_000, scans: 100, flight: 5_000, takes: 3,
		kept: 1_000, colds: 3, idle: 75 * time.Second, limit: 15 * time.Minute,
		waits:  waitPlan{waiting: 5_000, timers: 1_000, signals: 3_000},
		loops:  loopPlan{short: 1_000, long: 10_000},
		starts: startPlan{rounds: 1, clients: []int{manyClients}, each: 400 * time.Millisecond, events: 2_000, schedules: 10_000},
	}
}
