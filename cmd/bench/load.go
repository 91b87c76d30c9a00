package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// A load is what an engine is kept busy with.
type load struct {
	workflow string
	end      machine.RunState // of each run
	inFlight int
	warm     time.Duration // before anything counts
	window   time.Duration // what is counted
	windows  int           // one after the other, without a pause; 0 = 1
}

// A result is what one measurement found.
type result struct {
	took      time.Duration
	runs      []int           // that ended, by window
	machine   []ticks         // at the beginning, and at the end of each window
	latencies []time.Duration // of all of them, sorted
	used      usage

	ended       int   // runs, also before and after what counts
	sends, rows int64 // commits of transitions and their rows, of all those
}

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
func (r *running) load(ctx context.Context, l load) (result, error) {
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
func (r *running) watch(ctx context.Context, l load) (out result, begin time.Time, err error) {
	if err := pause(ctx, l.warm); err != nil {
		return out, begin, err
	}
	before, err := r.usage(ctx)
	if err != nil {
		return out, begin, err
	}
	begin = time.Now()
	out.runs = make([]int, max(1, l.windows))
	for i := 0; ; i++ {
		m, err := readTicks()
		if err != nil {
			return out, begin, err
		}
		out.machine = append(out.machine, m)
		if i == len(out.runs) {
			break
		}
		if err := pause(ctx, time.Until(begin.Add(l.window*time.Duration(i+1)))); err != nil {
			return out, begin, err
		}
	}
	out.took = time.Since(begin)
	after, err := r.usage(ctx)
	out.used = after.minus(before)
	return out, begin, err
}

// put notes what was found under a row of the book. Costs are for each of the
// calls that a run makes.
func (r result) put(b *book, round int, row string, calls int) {
	b.put(round, row, "steps/s", r.stepsPerSecond())
	b.put(round, row, "runs/s", float64(r.all())/r.took.Seconds())
	idle, stolen := r.machine[len(r.machine)-1].since(r.machine[0])
	b.put(round, row, "idle", idle)
	b.put(round, row, "stolen", stolen)
	if r.all() == 0 {
		return // too slow for the time it was given: nothing else can be said
	}
	for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		b.put(round, row, name, milliseconds(r.quantile(q)))
	}
	b.put(round, row, "p99/p50", r.quantile(0.99).Seconds()/r.quantile(0.5).Seconds())
	n := float64(r.all() * calls)
	for name, v := range map[string]float64{
		"commits/step": r.used.commits, "log/step": r.used.log,
		"engine µs/step": microseconds(r.used.engine), "agent µs/step": microseconds(r.used.agent), "server µs/step": microseconds(r.used.server),
		"all µs/step": microseconds(r.used.engine + r.used.agent + r.used.server),
	} {
		b.put(round, row, name, v/n)
	}
	// Exact: every run from its submission to its end.
	b.put(round, row, "sends/step", float64(r.sends)/float64(r.ended*calls))
	b.put(round, row, "rows/step", float64(r.rows)/float64(r.ended*calls))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
