package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
)

// perWorkflow is the number of schedules of a published workflow.
const perWorkflow = 100

// timetables returns workflow files with n schedules, 100 for each workflow. The next tick of
// each schedule is New Year, so that no schedule starts runs during the benchmark. Each run
// ends at once, so its journal has only one row.
func timetables(n int) fs.FS {
	files := fstest.MapFS{}
	for w := 0; w*perWorkflow < n; w++ {
		var b strings.Builder
		fmt.Fprintf(&b, head, fmt.Sprintf("timed_%d", w))
		for s := range min(perWorkflow, n-w*perWorkflow) {
			fmt.Fprintf(&b, "schedule \"s%d\" {\ncron = \"0 0 1 1 *\"\nvariables = { value = \"x\" }\n}\n", s)
		}
		b.WriteString("step \"a\" { value = var.value }\n}\n")
		files[fmt.Sprintf("timed_%d.hcl", w)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return files
}

// publishTimetables publishes n schedules in a database.
func publishTimetables(ctx context.Context, d *database, n int) error {
	w, err := timetable(n)
	if err != nil {
		return err
	}
	return publish(ctx, d, w.def, w.def.Names()...)
}

// timetable links the workflows that the function `timetables` returns. They use no agents.
func timetable(n int) (*work, error) {
	return bind(timetables(n), "timed_0", func(use dsl.AgentUse) (dsl.AgentBinary, error) {
		return dsl.AgentBinary{}, fmt.Errorf("the schedules use agent %s", use.Plugin)
	})
}

// tickAfter is the time from the start of an engine until the next tick, which all schedules
// have in common.
const tickAfter = 3 * time.Second

// schedules measures how late runs start if thousands of schedules have the same tick. For
// comparison, it measures how long EnqueueAll takes to submit the same number of runs.
func (l startsLab) schedules(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	n := l.p.starts.schedules
	w, err := timetable(n)
	if err != nil {
		return err
	}
	d, err := makeDatabase(ctx, l.dsn, "schedules")
	if err != nil {
		return err
	}
	closing.add(d.close)
	// No engine works on the runs in this database.
	other, err := makeDatabase(ctx, l.dsn, "enqueue")
	if err != nil {
		return err
	}
	closing.add(other.close)
	if err := publish(ctx, d, w.def, w.def.Names()...); err != nil {
		return err
	}
	err = l.inTurn(ctx, []subject{
		{"enqueue", func(ctx context.Context, round int) error { return l.enqueued(ctx, other, w, round) }},
		{"schedules", func(ctx context.Context, round int) error { return l.ticked(ctx, d, w, round) }},
	})
	if err != nil {
		return err
	}
	l.t.schedules(l.book, l.p)
	return nil
}

// enqueued submits as many runs as there are schedules, and records how long that takes.
func (l startsLab) enqueued(ctx context.Context, d *database, w *work, round int) error {
	n := l.p.starts.schedules
	all := make([]engine.Submission, n)
	for i := range all {
		all[i] = engine.Submission{Definition: w.def, Workflow: fmt.Sprintf("timed_%d", i/perWorkflow), Vars: w.vars, By: "bench"}
	}
	began := time.Now()
	if _, err := engine.EnqueueAll(ctx, engine.Config{Store: d.store, Options: engine.Options{Address: "bench"}}, all); err != nil {
		return err
	}
	took := time.Since(began)
	l.book.put(round, "enqueue", "ms", milliseconds(took))
	l.tell("round %d: %d runs submitted in %s", round+1, n, took.Round(time.Millisecond))
	return nil
}

// ticked gives all schedules the same next tick, and starts an engine. It records how late the
// runs start.
func (l startsLab) ticked(ctx context.Context, d *database, w *work, round int) (err error) {
	const look = 50 * time.Millisecond // pause between two counts of the runs
	n := l.p.starts.schedules
	runs, err := d.runs(ctx)
	if err != nil {
		return err
	}
	tick := time.Now().Add(tickAfter).Truncate(time.Millisecond)
	if _, err := d.db.ExecContext(ctx, `UPDATE engine.schedule SET next_tick = $1`, tick); err != nil {
		return fmt.Errorf("set the tick: %w", err)
	}
	r, err := start(ctx, w, setup{store: d.store, d: d, invoker: mute{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := pause.For(ctx, time.Until(tick)); err != nil {
		return err
	}
	err = l.prof.during(func() error {
		before, known := d.cpu(ctx)
		for now := runs; now < runs+n; {
			if now, err = d.runs(ctx); err == nil {
				err = pause.For(ctx, look)
			}
			if err != nil {
				return fmt.Errorf("%d of %d schedules have started a run: %w", now-runs, n, err)
			}
		}
		if after, _ := d.cpu(ctx); known {
			l.book.put(round, "schedules", "all µs/run", microseconds(after-before)/float64(n))
		}
		return nil
	})
	if err != nil {
		return err
	}
	lags, err := tickLags(ctx, d, tick)
	if err != nil {
		return err
	}
	for i, name := range []string{"lag p50", "lag p99", "lag max"} {
		l.book.put(round, "schedules", name, milliseconds(lags[i]))
	}
	l.tell("round %d: %d schedules: p50 %s, p99 %s", round+1, n, lags[0].Round(time.Millisecond), lags[1].Round(time.Millisecond))
	return r.quiet(ctx)
}

// tickLags returns how late the runs of a tick started: the median, the 99th percentile and the
// maximum.
func tickLags(ctx context.Context, d *database, tick time.Time) (out [3]time.Duration, err error) {
	const query = `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY late), percentile_cont(0.99) WITHIN GROUP (ORDER BY late), max(late)
		FROM (SELECT extract(epoch FROM created_at - $1::timestamptz)::float8 AS late FROM engine.run WHERE created_at >= $1) x`
	var late [3]float64
	if err := d.db.QueryRowContext(ctx, query, tick).Scan(&late[0], &late[1], &late[2]); err != nil {
		return out, fmt.Errorf("read how late the runs started: %w", err)
	}
	for i, s := range late {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out, nil
}
