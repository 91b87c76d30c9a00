package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/cmd/bench/internal/gauge"
	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A loader submits runs to a running engine, so that the engine is always busy.
type loader struct{ *running }

func (r *running) loader() loader { return loader{r} }

// A load describes the runs that keep an engine busy.
type load struct {
	workflow string
	end      status.RunState // expected status at the end of each run
	inFlight int             // number of runs in flight at any time
	warm     time.Duration   // time under load before the measurement begins
	window   time.Duration   // length of a window, in which runs are counted
	// Number of windows, which follow each other without a pause; 0 means 1 window.
	windows int
}

// A result holds the figures of one measurement.
type result struct {
	took time.Duration // length of all windows together
	runs []int         // number of runs that ended in each window
	// Costs and CPU times until the beginning of the first window, and until the end of each
	// window.
	marks     []mark
	latencies []time.Duration // how long each counted run took, sorted

	ended int // number of all ended runs, including runs that ended outside the windows
	// Number of commits of transitions, and number of rows in these commits, for all runs.
	sends, rows int64
}

// A mark holds the costs that the measured processes have had until a certain time. It also
// holds how long the CPUs of the machine were busy and idle until then.
type mark struct {
	usage
	machine gauge.Ticks
}

// used returns the costs in all windows together.
func (r result) used() usage { return r.marks[len(r.marks)-1].minus(r.marks[0].usage) }

// all returns the number of runs that ended in all windows together.
func (r result) all() (n int) {
	for _, runs := range r.runs {
		n += runs
	}
	return n
}

func (r result) stepsPerSecond() float64 { return float64(r.all()*steps) / r.took.Seconds() }

func (r result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(len(r.latencies)-1, int(q*float64(len(r.latencies))))]
}

// load keeps l.inFlight runs in flight: each goroutine submits a run, waits for the end of the run
// and submits the next one. Only runs that end in a window count for the number of runs per second
// and for the latencies. The load is already the same before the first window begins.
func (r loader) load(ctx context.Context, l load) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sends, rows := r.store.commits.Load(), r.store.rows.Load()
	var over atomic.Bool
	var wg sync.WaitGroup
	start := time.Now()
	ends := make([][]finish, l.inFlight) // one slice for each goroutine
	for i := range l.inFlight {
		wg.Go(func() {
			for !over.Load() {
				at := time.Since(start)
				if err := r.once(ctx, l.workflow, l.end); err != nil {
					if ctx.Err() == nil {
						cancel(err)
					}
					return
				}
				now := time.Since(start)
				ends[i] = append(ends[i], finish{now, now - at})
			}
		})
	}
	out, begin, err := r.watch(ctx, l)
	over.Store(true)
	wg.Wait()
	out.sends, out.rows = r.store.commits.Load()-sends, r.store.rows.Load()-rows
	if cause := context.Cause(ctx); cause != nil {
		return result{}, fmt.Errorf("%d in flight: %w", l.inFlight, cause)
	}
	if err != nil {
		return result{}, err
	}
	width := out.took / time.Duration(len(out.runs))
	for _, own := range ends {
		out.ended += len(own)
		for _, f := range own {
			if in := f.at - begin.Sub(start); in >= 0 && in < out.took {
				out.runs[min(len(out.runs)-1, int(in/width))]++
				out.latencies = append(out.latencies, f.took)
			}
		}
	}
	slices.Sort(out.latencies)
	return out, nil
}

// A finish says when a run ended and how long the run took. It holds no pointer, because in
// five minutes millions of runs end. If a finish held a pointer, the garbage collector would
// have to scan all of them, in the process of the measured engine.
type finish struct {
	at   time.Duration // time from the start of the load to the end of the run
	took time.Duration // time from the submission of the run to its end
}

// watch waits until the last time window of the measurement ends. The result `out` has the
// costs at the beginning of the first window and at the end of each window. It also has the
// length of all windows together, but not the number of runs. The result `begin` is the time
// at which the first window began.
func (r loader) watch(ctx context.Context, l load) (out result, begin time.Time, err error) {
	if err := pause.For(ctx, l.warm); err != nil {
		return out, begin, err
	}
	out.runs = make([]int, max(1, l.windows))
	for i := 0; ; i++ {
		m, err := r.mark(ctx)
		if err != nil {
			return out, begin, err
		}
		out.marks = append(out.marks, m)
		if i == 0 {
			begin = time.Now()
		}
		if i == len(out.runs) {
			break
		}
		if err := pause.For(ctx, time.Until(begin.Add(l.window*time.Duration(i+1)))); err != nil {
			return out, begin, err
		}
	}
	out.took = time.Since(begin)
	return out, begin, nil
}

func (r loader) mark(ctx context.Context) (m mark, err error) {
	if m.usage, err = r.usage(ctx); err != nil {
		return m, err
	}
	m.machine, err = gauge.ReadTicks()
	return m, err
}

// put records the figures of a load in the book, as numbers of one row. The parameter `calls` is
// the number of calls that each run makes. Each cost is divided by the number of calls, so the book
// has the average cost of one call.
func (r result) put(b *book, round int, row string, calls int) {
	b.put(round, row, "steps/s", r.stepsPerSecond())
	b.put(round, row, "runs/s", float64(r.all())/r.took.Seconds())
	idle, stolen := r.marks[len(r.marks)-1].machine.Since(r.marks[0].machine)
	b.put(round, row, "idle", idle)
	b.put(round, row, "stolen", stolen)
	if r.all() == 0 {
		return // no run ended in the windows, so there are no other figures
	}
	for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		b.put(round, row, name, milliseconds(r.quantile(q)))
	}
	b.put(round, row, "p99/p50", r.quantile(0.99).Seconds()/r.quantile(0.5).Seconds())
	r.used().put(b, round, row, r.all()*calls)
	// These two figures include all commits of all runs, also the commits before the first window
	// and after the last window.
	b.put(round, row, "sends/step", float64(r.sends)/float64(r.ended*calls))
	b.put(round, row, "rows/step", float64(r.rows)/float64(r.ended*calls))
}

// put divides the usage by the number of steps, and records the quotients as figures of a row of
// the book.
func (u usage) put(b *book, round int, row string, steps int) {
	for name, v := range map[string]float64{
		"commits/step": u.commits, "log/step": u.log,
		"engine µs/step": microseconds(u.engine), "agent µs/step": microseconds(u.agent), "server µs/step": microseconds(u.server),
		"all µs/step": microseconds(u.engine + u.agent + u.server),
	} {
		b.put(round, row, name, v/float64(steps))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
