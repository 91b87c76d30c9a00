package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/saga-engine/engine/engine"
)

// A keeping is a way for runs to stay in an engine's memory.
type keeping struct {
	row, workflow string
	full          bool // agents have no room
}

// memory measures what an engine keeps for each open run: one whose call is
// under way, and idle ones.
func (l *lab) memory(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	d, err := makeDatabase(ctx, l.dsn, "memory")
	if err != nil {
		return err
	}
	closing.add(d.close)
	for _, k := range []keeping{
		{"in flight", "flying", false}, {"held", "five", true}, {"in backoff", "backoff", false}, {"parked", "parked", false},
	} {
		if err := l.keep(ctx, d, k); err != nil {
			return fmt.Errorf("%s: %w", k.row, err)
		}
	}
	l.t.memory(l.book, l.p)
	return nil
}

// keep has an engine of its own keep runs.
func (l *lab) keep(ctx context.Context, d *database, k keeping) (err error) {
	s := setup{store: d.store, options: engine.Options{Alone: true}}
	if k.full {
		s.invoker, s.full = silent{}, occupied{}
	}
	r, err := start(ctx, l.work, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stopNow()) }()
	fill := func(n int) error {
		if err := r.fill(ctx, k.workflow, n); err != nil {
			return err
		}
		return r.quiet(ctx)
	}
	if err := fill(64); err != nil { // so that everything is there that does not grow with the runs
		return err
	}
	before := inUse()
	if err := l.prof.during(func() error { return fill(l.p.kept) }); err != nil {
		return err
	}
	after := inUse()
	n := float64(l.p.kept)
	l.book.put(0, "memory, "+k.row, "bytes/run", (float64(after.bytes)-float64(before.bytes))/n)
	l.book.put(0, "memory, "+k.row, "goroutines/run", float64(after.goroutines-before.goroutines)/n)
	l.tell("memory: %s: %.0f bytes", k.row, (float64(after.bytes)-float64(before.bytes))/n)
	return nil
}

// fill submits runs and does not wait for them.
func (r *running) fill(ctx context.Context, workflow string, n int) error {
	var next atomic.Int64
	errs := make([]error, 64)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && next.Add(1) <= int64(n) {
				_, errs[i] = r.submit(ctx, workflow)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

type footprint struct {
	bytes      uint64
	goroutines int
}

// inUse returns what this process holds, once garbage has gone: heap and stacks.
func inUse() footprint {
	for range 3 { // pools are emptied by the second, finalizers by the third
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()}
}
