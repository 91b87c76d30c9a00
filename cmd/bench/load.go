package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A loader puts load on a running engine.
type loader struct{ *running }

// A load is what an engine is kept busy with.
type load struct {
	workflow string
	end      status.RunState // of each run
	inFlight int
	warm     time.Duration // before anything counts
	window   time.Duration // what is counted
	windows  int           // one after the other, without a pause; 0 = 1
}

// A result is what one measurement found.
type result struct {
	took      time.Duration
	runs      []int           // that ended, by window
	marks     []mark          // at the beginning, and at the end of each window
	latencies []time.Duration // of all of them, sorted

	ended       int   // runs, also before and after what counts
	sends, rows int64 // commits of transitions and their rows, of all those
}

// A mark is what had been used at one moment, by those that are measured and by
// the whole machine.
type mark struct {
	usage
	machine ticks
}

// used returns what the windows took together.
func (r result) used() usage { return r.marks[len(r.marks)-1].minus(r.marks[0].usage) }

// all is how many runs ended.
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

// load keeps a number of runs in flight: each is submitted, waited for, and
// followed by the next. What ends within the windows counts, and the load is
// the same before and after.
func (r loader) load(ctx context.Context, l load) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sends, rows := r.store.commits.Load(), r.store.rows.Load()
	var over atomic.Bool
	var wg sync.WaitGroup
	start := time.Now()
	ends := make([][]finish, l.inFlight) // by who waited
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

// A finish is when a run ended, and how long it had taken. It holds no pointer:
// there are millions in five minutes, and the collector that looks through them is
// the engine's, too.
type finish struct {
	at   time.Duration // since the load began
	took time.Duration
}

// watch waits for the end of the windows and returns what was used in them,
// and when they began.
func (r loader) watch(ctx context.Context, l load) (out result, begin time.Time, err error) {
	if err := pause(ctx, l.warm); err != nil {
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
		if err := pause(ctx, time.Until(begin.Add(l.window*time.Duration(i+1)))); err != nil {
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
	m.machine, err = readTicks()
	return m, err
}

// put notes what was found under a row of the book. Costs are for each of the
// calls that a run makes.
func (r result) put(b *book, round int, row string, calls int) {
	b.put(round, row, "steps/s", r.stepsPerSecond())
	b.put(round, row, "runs/s", float64(r.all())/r.took.Seconds())
	idle, stolen := r.marks[len(r.marks)-1].machine.since(r.marks[0].machine)
	b.put(round, row, "idle", idle)
	b.put(round, row, "stolen", stolen)
	if r.all() == 0 {
		return // too slow for the time it was given: nothing else can be said
	}
	for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		b.put(round, row, name, milliseconds(r.quantile(q)))
	}
	b.put(round, row, "p99/p50", r.quantile(0.99).Seconds()/r.quantile(0.5).Seconds())
	r.used().put(b, round, row, r.all()*calls)
	// Exact: every run from its submission to its end.
	b.put(round, row, "sends/step", float64(r.sends)/float64(r.ended*calls))
	b.put(round, row, "rows/step", float64(r.rows)/float64(r.ended*calls))
}

// put notes what was used for each of so many steps.
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
