package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
)

// A keeping says why open runs stay in an engine's memory, and names a workflow whose runs stay
// there for this reason.
type keeping struct {
	row, workflow string
	full          bool // the engine uses agents that never have a free slot
}

// memory measures how much memory an engine uses for each open run: for runs with a call in
// flight, and for runs that wait.
func (l processLab) memory(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	d, err := makeDatabase(ctx, l.dsn, "memory")
	if err != nil {
		return err
	}
	closing.add(d.close)
	for _, k := range keepings() {
		if err := l.keptApart(ctx, d, k); err != nil {
			return fmt.Errorf("%s: %w", k.row, err)
		}
	}
	l.t.memory(l.book, l.p)
	return nil
}

func keepings() []keeping {
	return []keeping{{"in flight", "flying", false}, {"held", "five", true}, {"in backoff", "backoff", false}, {"parked", "parked", false}}
}

// keptApart measures the runs of the keeping k in a separate process, so that other memory of the
// benchmark does not change the figures.
func (l processLab) keptApart(ctx context.Context, d *database, k keeping) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-keep="+k.row, "-kept="+strconv.Itoa(l.p.kept), "-bin="+l.bin)
	cmd.Env = append(os.Environ(), envKeep+"="+d.dsn.String())
	cmd.Stderr = l.progress
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var f footprint
	if err := json.Unmarshal(out, &f); err != nil {
		return err
	}
	n := float64(l.p.kept)
	l.book.put(0, "memory, "+k.row, "bytes/run", f.Bytes/n)
	l.book.put(0, "memory, "+k.row, "goroutines/run", f.Goroutines/n)
	l.tell("memory: %s: %.0f bytes", k.row, f.Bytes/n)
	return nil
}

// envKeep is the environment variable with the address of the database, for the process
// that keptApart starts.
const envKeep = "ENGINE_BENCH_KEEP_DSN"

// kept measures the memory of n open runs, and writes the figures to `out` as JSON. The parameter
// `row` is the name of a row of the table. This name selects the reason why the runs stay open, for
// example "parked". The function `kept` is called in the separate process that keptApart starts.
func kept(ctx context.Context, w *work, row, dsn string, n int, out io.Writer) (err error) {
	i := slices.IndexFunc(keepings(), func(k keeping) bool { return k.row == row })
	if i < 0 {
		return fmt.Errorf("-keep %s: unknown", row)
	}
	store, err := postgres.Open(ctx, dsn, postgres.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := keep(ctx, w, store, keepings()[i], n)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(f)
}

// keep starts an engine and n runs that stay in the engine's memory. It returns by how much
// the memory and the goroutines of the process have grown because of the runs.
func keep(ctx context.Context, w *work, store store.Store, k keeping, n int) (f footprint, err error) {
	s := setup{store: store, options: engine.Options{OnlyOwnRuns: true}}
	if k.full {
		s.invoker, s.full = silent{}, occupied{}
	}
	r, err := start(ctx, w, s)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, r.stopNow()) }()
	fill := func(n int) error {
		if err := r.loader().fill(ctx, k.workflow, n); err != nil {
			return err
		}
		return r.quiet(ctx)
	}
	// These few runs are not measured. They allocate the memory that the engine needs
	// independently of the number of runs.
	if err := fill(64); err != nil {
		return f, err
	}
	before := inUse()
	if err := fill(n); err != nil {
		return f, err
	}
	after := inUse()
	return footprint{after.Bytes - before.Bytes, after.Goroutines - before.Goroutines}, nil
}

// fill submits n runs and does not wait for their ends.
func (r loader) fill(ctx context.Context, workflow string, n int) error {
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

// A footprint holds the memory of a process in bytes, and the number of its goroutines.
type footprint struct {
	Bytes, Goroutines float64
}

// inUse collects garbage. Then it returns the bytes of heap and stacks that this process uses,
// and the number of its goroutines.
func inUse() footprint {
	for range 3 { // the second collection empties pools, the third frees objects with finalizers
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{float64(m.HeapAlloc + m.StackInuse), float64(runtime.NumGoroutine())}
}
