package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"time"
)

// A lab holds everything that the parts of the benchmark share.
type lab struct {
	dsn  string // address of the server
	bin  string // directory of the binaries
	p    plan
	rows *regexp.Regexp // pattern of the rows to measure; only parts that call inTurn use it
	// If `tuned` is true, the benchmark may change the server's settings, because nothing else uses
	// the server.
	tuned    bool
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

// A runLab has the methods that measure runs: steps per second, durations of single runs, kinds
// of workflows.
type runLab struct{ *lab }

// A serverLab has the methods that change settings of the PostgreSQL server and vacuum the
// databases of the benchmark.
type serverLab struct{ *lab }

// A processLab has the methods that measure processes: memory, time to start, statements of an
// idle engine.
type processLab struct{ *lab }

// A historyLab has the methods that measure a long load, a long queue, many stored runs, and
// many calls.
type historyLab struct{ *lab }

// A startsLab has the methods that measure how runs start without the Go API of an engine: with
// SQL, by an event or by a schedule. It also measures how fast replies of runs reach a program.
type startsLab struct{ *lab }

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

// A plan says how long each measurement takes, and how many runs, steps or rows it has.
type plan struct {
	rounds int           // number of rounds in which all subjects of a part are measured in turn
	warm   time.Duration // time under the same load before each measurement
	each   time.Duration // length of each measurement

	scale int // size of pgbench's table, in units of 100,000 rows
	// Length of each of the five parts of the long measurement: one minute, or less with -short.
	minute time.Duration

	large int // number of calls of a large run in the part "shapes"

	queued     int           // number of runs in the queue: submitted, but without an owner
	queueLimit time.Duration // time limit for submitting the queued runs
	claim      time.Duration // duration of a measurement in which an engine claims queued runs

	finished int // number of finished runs in the database during the scans of a Supervisor
	scans    int // number of measured scans of a Supervisor
	pending  int // number of runs in flight for the takeover
	// How many times an engine takes over all runs in flight, one takeover after the other.
	takes int

	loops  loopPlan  // numbers of iterations of the measured loops
	starts startPlan // sizes of the parts that measure how runs start

	waits waitPlan // numbers of runs that wait for a signal or a time
	// Number of open runs that an engine keeps in memory while the benchmark measures how much
	// memory they need.
	kept  int
	colds int           // number of cold starts
	idle  time.Duration // shortest time in which the statements of an idle engine are counted

	limit time.Duration // time limit for the whole benchmark
}

// A loopPlan holds the number of iterations of a short loop and of a long loop.
type loopPlan struct{ short, long int }

// sizes yields "short" and "long", with their numbers of iterations.
func (p loopPlan) sizes() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) { _ = yield("short", p.short) && yield("long", p.long) }
}

// A startPlan holds the sizes of the parts that measure how runs start.
type startPlan struct {
	// Number of rounds in which the subjects of these parts are measured in turn.
	rounds    int
	clients   []int         // numbers of clients that submit at the same time
	each      time.Duration // length of each measurement of submissions
	events    int           // number of events of each measurement
	schedules int           // number of schedules that are due at the same time
}

// A waitPlan holds the numbers of runs for the part of the benchmark that is named "waits".
type waitPlan struct {
	waiting int // number of runs that wait for a signal at the same time
	timers  int // number of runs that wait for a time, while other runs wait for a signal
	signals int // number of waiting runs to which the benchmark sends a signal
}

// whole returns the plan of `make bench`.
func whole() plan {
	return plan{
		rounds: 3, warm: 2 * time.Second, each: 10 * time.Second, scale: 10, minute: time.Minute, large: 10_000,
		queued: 1_000_000, queueLimit: 15 * time.Minute, claim: 30 * time.Second,
		finished: 10_000_000, scans: 500, pending: 100_000, takes: 3,
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
		finished: 300_000, scans: 100, pending: 5_000, takes: 3,
		kept: 1_000, colds: 3, idle: 75 * time.Second, limit: 15 * time.Minute,
		waits:  waitPlan{waiting: 5_000, timers: 1_000, signals: 3_000},
		loops:  loopPlan{short: 1_000, long: 10_000},
		starts: startPlan{rounds: 1, clients: []int{manyClients}, each: 400 * time.Millisecond, events: 2_000, schedules: 10_000},
	}
}
