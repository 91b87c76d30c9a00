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

	"github.com/saga-engine/engine/engine/machine"
)

const (
	greedyTenants = 3 // workflows of the worst kind
	greedyRuns    = 4 // runs of each that are in flight
)

// tenants measures what a run of one workflow takes while the engine has nothing else
// to do, and while three other workflows take all the computing time that they may.
func (l *lab) tenants(ctx context.Context) (err error) {
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
	quiet := load{workflow: "quiet", end: machine.RunSucceeded, inFlight: 1, warm: l.p.warm, window: l.p.each}
	crowded := subject{"quiet/with greedy", func(ctx context.Context, round int) error {
		stop := pg.greedy(ctx)
		err := l.loaded("quiet/with greedy", pg, false, steps, quiet).measure(ctx, round)
		return errors.Join(err, stop())
	}}
	if err := l.inTurn(ctx, []subject{l.loaded("quiet/alone", pg, false, steps, quiet), crowded}); err != nil {
		return err
	}
	l.t.tenants(l.book)
	return nil
}

// greedy keeps runs of the greedy workflows in flight. stop waits until the last of
// them has ended.
func (r *running) greedy(ctx context.Context) (stop func() error) {
	var over atomic.Bool
	var wg sync.WaitGroup
	failed := make(chan error, greedyTenants*greedyRuns)
	for i := range greedyTenants {
		for range greedyRuns {
			wg.Go(func() {
				for !over.Load() && ctx.Err() == nil {
					if err := r.once(ctx, fmt.Sprintf("greedy%d", i), machine.RunSucceeded); err != nil {
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

// tenantsSource returns the workflows. A quiet run has as many steps as the other runs of
// the benchmark. Each step of a greedy run evaluates an expression whose cost is near the
// limit.
func tenantsSource() fs.FS {
	var b strings.Builder
	b.WriteString(`agent "mock" {
  circuit_breaker { trip_after = 1000000000 }
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
	return fstest.MapFS{"tenants.hcl": {Data: []byte(b.String())}}
}

// tenants prints what greedy workflows cost a quiet one.
func (t *table) tenants(b *book) {
	const columns = "%-28s %9s %9s %9s"
	t.say("")
	t.say(columns, "a 5-step run, lone", "p50 ms", "p95 ms", "p99 ms")
	for _, row := range []string{"quiet/alone", "quiet/with greedy"} {
		t.say(columns, row, cell(b, row, "p50", "%.1f"), cell(b, row, "p95", "%.1f"), cell(b, row, "p99", "%.1f"))
	}
	t.say("Greedy: %d workflows with %d runs each in flight, whose inputs cost nearly as much computing time as an expression may.", greedyTenants, greedyRuns)
}
