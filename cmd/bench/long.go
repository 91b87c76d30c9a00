package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// minutes is the number of windows of the long measurement. The field plan.minute is the length of
// a window: one minute, or less with -short.
const minutes = 5

// long measures an engine under load without a pause, with autovacuum on. The load takes five
// minutes, or less with -short. If a database becomes slower with age, the figures of the last
// minute are worse than the earlier figures. But they can also be worse because of other programs
// on the machine. So the method `long` then measures two databases in turn: the old one and a new
// one.
func (l historyLab) long(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	pg, err := l.runLab().postgres(ctx, "long", &closing)
	if err != nil {
		return err
	}
	var res result
	err = l.prof.during(func() (err error) {
		res, err = pg.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, warm: l.p.warm, window: l.p.minute, windows: minutes})
		return err
	})
	if err != nil {
		return err
	}
	res.put(l.book, 0, "long/256", steps)
	for i, runs := range res.runs {
		row := fmt.Sprintf("long/minute %d", i+1)
		l.book.put(0, row, "steps/s", float64(runs*steps)/l.p.minute.Seconds())
		idle, stolen := res.marks[i+1].machine.Since(res.marks[i].machine)
		l.book.put(0, row, "idle", idle)
		l.book.put(0, row, "stolen", stolen)
		if runs > 0 {
			res.marks[i+1].minus(res.marks[i].usage).put(l.book, 0, row, runs*steps)
		}
	}
	var vacuums int
	const counted = `SELECT coalesce(sum(autovacuum_count), 0) FROM pg_stat_user_tables WHERE schemaname = 'engine'`
	if err := pg.d.db.QueryRowContext(ctx, counted).Scan(&vacuums); err != nil {
		return fmt.Errorf("count autovacuums: %w", err)
	}
	l.book.put(0, "long/256", "autovacuums", float64(vacuums))
	young, err := l.runLab().postgres(ctx, "young", &closing)
	if err != nil {
		return err
	}
	if err := l.aged(ctx, pg, young); err != nil {
		return err
	}
	l.t.long(l.book, l.p)
	return nil
}

// aged measures in turn an engine whose database was under load for minutes, and an engine with
// a new database. Between the measurements the benchmark does not vacuum; only autovacuum does.
func (l historyLab) aged(ctx context.Context, old, young *running) error {
	// The engine and the agent of the new database have just started, so warm them up.
	if _, err := young.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, window: l.p.each}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for round := range l.p.rounds {
		if err := errors.Join(l.brief(ctx, round, "long/aged", old), l.brief(ctx, round, "long/new", young)); err != nil {
			return err
		}
	}
	return nil
}

func (l historyLab) brief(ctx context.Context, round int, row string, pg *running) error {
	res, err := pg.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, warm: l.p.warm, window: l.p.each})
	if err != nil {
		return fmt.Errorf("%s: %w", row, err)
	}
	res.put(l.book, round, row, steps)
	return nil
}

// loopKinds are the kinds of measured loops: without and with a call of an agent in each iteration.
var loopKinds = []string{"values", "calls"}

// loopSource returns the workflow file of the loops. The name of a workflow is its kind and its
// size, such as values_short.
func loopSource(p loopPlan) fs.FS {
	var b strings.Builder
	for size, n := range p.sizes() {
		fmt.Fprintf(&b, head+`  step "a" {
    value = { n = try(self.previous.n + 1, 1), text = var.value }
    repeat { max_iterations = %d }
  }
}
`, "values_"+size, n)
		fmt.Fprintf(&b, head+`  step "a" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "1m"
    input { value = var.value }
    repeat { max_iterations = %d }
  }
}
`, "calls_"+size, n)
	}
	return fstest.MapFS{"loops.hcl": {Data: []byte(b.String())}}
}

// A loopResult holds the figures of one run with a loop.
type loopResult struct {
	iteration time.Duration // time of one iteration
	cpu       time.Duration // CPU time of engine, agent and server for one iteration
	rows      float64       // rows of the journal for each iteration
	// Bytes of memory that the state of the run takes after the last iteration.
	state float64
	// Times to load the run: `short` with its snapshot, and `whole` without the snapshot, from the
	// first row of the journal.
	short, whole time.Duration
	// Number of rows that the snapshot covers; 0 = the run has no snapshot.
	covered int32
}

// loop measures runs that have one step with a repeat block. It compares the cost of an
// iteration in a short loop and in a long loop. It also measures how long an engine takes to
// load such a run.
func (l historyLab) loop(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	w, err := linkSource(ctx, l.work.catalog, loopSource(l.p.loops), "calls_short")
	if err != nil {
		return err
	}
	d, err := makeDatabase(ctx, l.dsn, "loop")
	if err != nil {
		return err
	}
	closing.add(d.close)
	r, err := start(ctx, w, setup{store: d.store, d: d})
	if err != nil {
		return err
	}
	closing.add(r.stop)
	for _, kind := range loopKinds { // warm up
		if err := r.once(ctx, kind+"_short", status.RunSucceeded); err != nil {
			return err
		}
	}
	for _, kind := range loopKinds {
		for size, n := range l.p.loops.sizes() {
			name := kind + "_" + size
			res, err := looped(ctx, r, name, n)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			row := "loop/" + name
			l.book.put(0, row, "µs/iteration", microseconds(res.iteration))
			l.book.put(0, row, "CPU µs/iteration", microseconds(res.cpu))
			l.book.put(0, row, "rows/iteration", res.rows)
			l.book.put(0, row, "state bytes", res.state)
			l.book.put(0, row, "load ms", milliseconds(res.short))
			l.book.put(0, row, "load whole ms", milliseconds(res.whole))
			l.book.put(0, row, "covered rows", float64(res.covered))
		}
	}
	l.t.loop(l.book, l.p)
	return nil
}

// looped makes one run of a workflow with a loop of n iterations, and measures it.
func looped(ctx context.Context, r *running, workflow string, n int) (res loopResult, err error) {
	rows := r.store.rows.Load()
	before, err := r.usage(ctx)
	if err != nil {
		return res, err
	}
	began := time.Now()
	run, err := r.submit(ctx, workflow)
	if err != nil {
		return res, err
	}
	s, err := r.node.Wait(ctx, run.Run)
	if err != nil {
		return res, fmt.Errorf("wait: %w", err)
	}
	if s.Status() != status.RunSucceeded {
		return res, fmt.Errorf("run %s: %s: %s", run.Name, s.Status(), s.Failure().Message)
	}
	res.iteration = time.Since(began) / time.Duration(n)
	after, err := r.usage(ctx)
	if err != nil {
		return res, err
	}
	used := after.minus(before)
	res.cpu = (used.engine + used.agent + used.server) / time.Duration(n)
	res.rows = float64(r.store.rows.Load()-rows) / float64(n)
	defs := journal.NewDefinitions(r.store, nil)
	began = time.Now()
	head, all, err := store.LoadRun(ctx, r.store, run.Run)
	if err == nil {
		_, err = journal.Reader{Defs: defs}.Fold(ctx, store.Loaded{Head: head, Rows: all}, &journal.Scratch{}, nil)
	}
	if err != nil {
		return res, err
	}
	res.whole, all, s = time.Since(began), nil, nil
	memory := inUse()
	began = time.Now()
	short, err := journal.LoadState(ctx, r.store.Full, nil, defs, run.Run)
	if err != nil {
		return res, err
	}
	res.short, res.covered, short.Records = time.Since(began), short.Covered, nil
	res.state = inUse().Bytes - memory.Bytes
	return res, alive(short.State)
}

// alive returns an error if s is not the state of a run. The caller first measures the memory
// of the state and then calls alive. Without this call, the garbage collector could remove the
// state before the measurement.
func alive(s *machine.State) error {
	if s.RunID() == 0 {
		return errors.New("the state is empty")
	}
	return nil
}
