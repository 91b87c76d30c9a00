package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing/fstest"

	"github.com/saga-engine/engine/engine/machine/status"
)

const (
	// Number of greedy workflows, whose expressions cost nearly as much as is allowed.
	greedyTenants = 3
	// Number of runs in flight of each greedy workflow, and of the workflow "hog".
	greedyRuns = 4
)

// tenants measures how long a run of the workflow "quiet" takes. It measures this three times:
// on an idle engine, with runs of greedy workflows in flight, and with runs of the workflow
// "hog" in flight.
func (l runLab) tenants(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	w, err := linkSource(ctx, l.work.catalog, tenantsSource(), "quiet")
	if err != nil {
		return err
	}
	d, err := makeDatabase(ctx, l.dsn, "tenants")
	if err != nil {
		return err
	}
	closing.add(d.close)
	pg, err := start(ctx, w, setup{store: d.store, d: d})
	if err != nil {
		return err
	}
	closing.add(pg.stop)
	quiet := load{workflow: "quiet", end: status.RunSucceeded, inFlight: 1, warm: l.p.warm, window: l.p.each}
	withGreedy := func(row string, greedy ...string) subject {
		return subject{row, func(ctx context.Context, round int) error {
			stop := pg.loader().greedy(ctx, greedy)
			err := l.loaded(row, pg, false, steps, quiet).measure(ctx, round)
			return errors.Join(err, stop())
		}}
	}
	subjects := []subject{
		l.loaded("quiet/alone", pg, false, steps, quiet),
		withGreedy("quiet/with greedy", "greedy0", "greedy1", "greedy2"),
		withGreedy("quiet/with a hog", "hog"),
	}
	if err := l.inTurn(ctx, subjects); err != nil {
		return err
	}
	l.t.tenants(l.book)
	return nil
}

// greedy keeps greedyRuns runs of each workflow in flight, until the caller calls the returned
// function `stop`. The function `stop` waits until the last run has ended, and returns the errors
// of the runs.
func (r loader) greedy(ctx context.Context, workflows []string) (stop func() error) {
	var over atomic.Bool
	var wg sync.WaitGroup
	failed := make(chan error, len(workflows)*greedyRuns)
	for _, workflow := range workflows {
		for range greedyRuns {
			wg.Go(func() {
				for !over.Load() && ctx.Err() == nil {
					if err := r.once(ctx, workflow, status.RunSucceeded); err != nil {
						failed <- err
						return
					}
				}
			})
		}
	}
	return func() error {
		over.Store(true)
		wg.Wait()
		close(failed)
		var errs []error
		for err := range failed {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}

// tenantsSource returns three kinds of workflow: quiet, greedy and hog. A quiet run has as many
// steps as the other runs of the benchmark. Each step of a greedy run evaluates an expression
// whose cost is near the limit. Each step of a hog run starts four processes that use the CPU
// for one second.
func tenantsSource() fs.FS {
	var b strings.Builder
	b.WriteString(`agent "mock" {
  circuit_breaker { trip_after = 1000000000 }
}
agent "exec" {
  env = ["PATH"]
}
locals {
  text = join("", [for n in range(900) : "0123456789012345678901234567890123456789012345678901234567890123"])
}
`)
	long(&b, "quiet", steps)
	for i := range greedyTenants {
		fmt.Fprintf(&b, head, fmt.Sprintf("greedy%d", i))
		before := "var.value"
		for j := range 2 {
			fmt.Fprintf(&b, `  step "s%d" {
    action       = agent.mock.echo
    compensation = "none"
    input { value = format("%%d", sum([for n in range(70) : length(local.text) if %s != ""])) }
  }
`, j, before)
			before = fmt.Sprintf("step.s%d.output.value", j)
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, head, "hog")
	b.WriteString(`  step "spin" {
    action       = agent.exec.run
    compensation = "none"
    input {
      argv = ["sh", "-c", "for i in 1 2 3 4; do timeout 1 sh -c 'while :; do :; done' & done; wait; true"]
    }
  }
}
`)
	return fstest.MapFS{"tenants.hcl": {Data: []byte(b.String())}}
}

// tenants prints how long a run of the workflow "quiet" takes: alone, with greedy runs, and
// with hog runs.
func (t *table) tenants(b *book) {
	const columns = "%-28s %9s %9s %9s"
	t.say("")
	t.say(columns, "a 5-step run, lone", "p50 ms", "p95 ms", "p99 ms")
	for _, row := range []string{"quiet/alone", "quiet/with greedy", "quiet/with a hog"} {
		t.say(columns, row, cell(b, row, "p50", "%.1f"), cell(b, row, "p95", "%.1f"), cell(b, row, "p99", "%.1f"))
	}
	t.say("Hog: a workflow with %d runs in flight, whose agent starts programs that spin on all CPUs.", greedyRuns)
	t.say("Greedy: %d workflows with %d runs each in flight, whose inputs cost nearly as much computing time as an expression may.", greedyTenants, greedyRuns)
}
