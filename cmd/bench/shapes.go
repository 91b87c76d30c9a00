package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A shape is a kind of large run: with many instances, many steps, many attempts or many child
// runs. The benchmark compares a large run with small runs that make the same calls.
type shape struct {
	row string
	// Word for the calls in the table: instances, steps or attempts.
	what string
	// Text in the table after the number of calls of the large run; "" = no text.
	parts string
	calls int             // number of calls of a small run
	end   status.RunState // expected status at the end of a run
	// If `together` is true, all instances of a large run are in flight together, and so are all
	// small runs. An instance is a call or, in the shape "family", a child run.
	together bool
	write    func(b *strings.Builder, name string, calls int) // writes the workflow to b
}

// shapes returns all shapes. The workflow of the large run has the name of the row. The workflow
// of the small runs has the same name with "small-" before it.
func shapes() []shape {
	return []shape{
		{"wide", "instances", "", 10, status.RunSucceeded, true, wide},
		{"long", "steps", "", steps, status.RunSucceeded, false, long},
		{"tried", "attempts", "", steps, status.RunFailed, false, tried},
		{"family", "steps", fmt.Sprintf(" in child runs of %d", steps), steps, status.RunSucceeded, true, family},
	}
}

// small returns how many small runs the benchmark compares with one large run. The parameter
// `large` is the number of calls of the large run. If the field `together` is true, the small runs
// together make as many calls as the large run. Otherwise the small runs together make a quarter of
// the calls of the large run.
func (s shape) small(large int) int {
	if s.together {
		return large / s.calls
	}
	return large / s.calls / 4
}

// shapes measures the cost of a step in runs with thousands of calls. It compares these runs with
// small runs that make the same calls. Calls are all together, or one after the other.
func (l runLab) shapes(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	n := l.p.large
	w, err := linkSource(ctx, l.work.catalog, shapesSource(n), "wide")
	if err != nil {
		return err
	}
	d, err := makeDatabase(ctx, l.dsn, "shapes")
	if err != nil {
		return err
	}
	closing.add(d.close)
	pg, err := start(ctx, w, setup{store: d.store, d: d})
	if err != nil {
		return err
	}
	closing.add(pg.stop)
	var subjects []subject
	for _, s := range shapes() {
		subjects = append(subjects, l.shaped("small-"+s.row, pg, s, s.small(n), s.calls), l.shaped(s.row, pg, s, 1, n))
	}
	// Do not measure the first run: during that run, the heap, the database and the agent's
	// process grow.
	if err := pg.loader().runAll(ctx, "wide", status.RunSucceeded, 1, true); err != nil {
		return err
	}
	if err := l.inTurn(ctx, subjects); err != nil {
		return err
	}
	l.t.shapes(l.book, l.p)
	return nil
}

// shaped returns a subject that measures several runs of a workflow. The parameter `row` is the
// name of the workflow, and also the name of the row in the results. The parameter `runs` is the
// number of runs, and `calls` is the number of calls that each run makes.
func (l runLab) shaped(row string, r *running, s shape, runs, calls int) subject {
	all := runs * calls
	return subject{row, func(ctx context.Context, round int) error {
		before, err := r.loader().mark(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := r.loader().runAll(ctx, row, s.end, runs, s.together); err != nil {
			return err
		}
		took := time.Since(began)
		after, err := r.loader().mark(ctx)
		if err != nil {
			return err
		}
		l.book.put(round, row, "µs/step", microseconds(took)/float64(all))
		after.minus(before.usage).put(l.book, round, row, all)
		l.tell("round %d: %s: %.0f steps/s", round+1, row, float64(all)/took.Seconds())
		return nil
	}}
}

// runAll starts runs of a workflow, all together or one after the other, and waits until all have
// ended. The parameter `end` is the expected status of the ended runs. If a run has another status,
// runAll returns an error.
func (r loader) runAll(ctx context.Context, workflow string, end status.RunState, runs int, together bool) error {
	if !together {
		for range runs {
			if err := r.once(ctx, workflow, end); err != nil {
				return err
			}
		}
		return nil
	}
	failed := make([]error, runs)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() { failed[i] = r.once(ctx, workflow, end) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// shapesSource returns the workflow files of all shapes. The parameter `large` is the number of
// calls in a large run. Each workflow has a separate file, because one of the workflows needs
// more than half of the allowed size of a file.
func shapesSource(large int) fs.FS {
	files := fstest.MapFS{"agent.hcl": {Data: []byte(`agent "mock" {
  circuit_breaker { trip_after = 1000000000 }
}
`)}}
	for _, s := range shapes() {
		for name, calls := range map[string]int{"small-" + s.row: s.calls, s.row: large} {
			var b strings.Builder
			s.write(&b, name, calls)
			files[name+".hcl"] = &fstest.MapFile{Data: []byte(b.String())}
		}
	}
	return files
}

// head is the beginning of a workflow, with the same variables as the other workflows of the
// benchmark.
const head = `workflow %q {
  deadline = "2h"
  variable "value" { type = string }
`

func wide(b *strings.Builder, name string, calls int) {
	fmt.Fprintf(b, head+`  step "s" {
    action       = agent.mock.echo
    compensation = "none"
    for_each     = toset(slice(flatten([for i in range(0, %d): [for j in range(0, 1000): "${i}-${j}"]]), 0, %d))
    input { value = var.value }
  }
}
`, name, (calls+999)/1000, calls)
}

func long(b *strings.Builder, name string, calls int) {
	fmt.Fprintf(b, head, name)
	value := "var.value"
	for i := range calls {
		fmt.Fprintf(b, "step \"s%d\" {\naction=agent.mock.echo\ninput { value=%s }\n}\n", i, value)
		value = fmt.Sprintf("step.s%d.output.value", i)
	}
	b.WriteString("}\n")
}

// family writes the workflow of the small or the large run. The small run makes its calls one
// after the other. The large run is a parent: each of its child runs makes calls in the same
// way as the small run.
func family(b *strings.Builder, name string, calls int) {
	if strings.HasPrefix(name, "small-") {
		long(b, name, calls)
		return
	}
	long(b, "child", steps)
	fmt.Fprintf(b, head+`  step "s" {
    workflow = workflow.child
    for_each = toset([for i in range(0, %d): tostring(i)])
    input { value = var.value }
  }
}
`, name, calls/steps)
}

func tried(b *strings.Builder, name string, calls int) {
	fmt.Fprintf(b, head+`  step "s" {
    action       = agent.mock.call
    compensation = "none"
    retry {
      max_attempts     = %d
      strategy         = "constant"
      initial_interval = "1ms"
      jitter           = "none"
    }
    input {
      value = var.value
      fail  = { code = "unavailable" }
    }
  }
}
`, name, calls)
}

// sagaCalls is the number of calls in a run of the workflow "undone": four calls of steps, and
// three calls that undo steps.
const sagaCalls = 7

// saga measures runs whose fourth step of five fails. Then the engine undoes the first three
// steps.
func (l runLab) saga(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	pg, err := l.postgres(ctx, "saga", &closing)
	if err != nil {
		return err
	}
	at := func(row string, inFlight int) subject {
		return l.loaded(row, pg, inFlight > 1, sagaCalls,
			load{workflow: "undone", end: status.RunCompensated, inFlight: inFlight, warm: l.p.warm, window: l.p.each})
	}
	if err := l.inTurn(ctx, []subject{at("saga/1", 1), at("saga/256", 256)}); err != nil {
		return err
	}
	l.t.saga(l.book)
	return nil
}
