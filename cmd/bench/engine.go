package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/machine"
)

//go:embed workflow.hcl
var source embed.FS

// steps is the number of steps of the workflow.
const steps = 5

// payload is what the steps hand on, in bytes.
const payload = 100

// A workflow is what is run, and where its agent is.
type workflow struct {
	def     *dsl.Definition
	vars    dsl.Value
	catalog *agents.Catalog
}

// value is what the runs are submitted with, as JSON.
func (w *workflow) value() string { return strconv.Quote(strings.Repeat("x", payload)) }

// link prepares the workflow against the agent in a directory.
func link(ctx context.Context, dir string) (*workflow, error) {
	catalog := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	m, diags := dsl.Parse(source, dsl.ParseOptions{})
	if err := diags.Err(); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	binaries := map[string]dsl.AgentBinary{}
	for _, use := range m.Agents() {
		bin, err := catalog.Find(ctx, use.Plugin, use.Constraint)
		if err != nil {
			return nil, fmt.Errorf("find agent %s in %s: %w", use.Plugin, dir, err)
		}
		binaries[use.Name] = bin.Pin()
	}
	def, diags := dsl.Link(m, binaries)
	if err := diags.Err(); err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	vars, diags := def.Workflow("five").Bind([]dsl.Assignment{{Name: "value", Text: strings.Repeat("x", payload), Source: "bench"}})
	if err := diags.Err(); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	return &workflow{def: def, vars: vars, catalog: catalog}, nil
}

// A running is an engine at work on a store.
type running struct {
	wf    *workflow
	store *counted
	pool  *agents.Pool
	node  *engine.Node
	end   context.CancelFunc
	ended chan error
}

// start starts an engine in this process; its agent is a process of its own.
func start(ctx context.Context, b *bed, wf *workflow) (*running, error) {
	r := &running{wf: wf, store: &counted{Store: b.store}, ended: make(chan error, 1)}
	r.pool = agents.NewPool(agents.Options{Catalog: wf.catalog})
	var err error
	r.node, err = engine.NewNode(engine.Config{
		Store: r.store, Invoker: r.pool, Capacity: r.pool,
		Options: engine.Options{Address: "bench", Writers: b.writers},
	})
	if err != nil {
		r.pool.Close()
		return nil, err
	}
	ctx, r.end = context.WithCancel(ctx)
	go func() { r.ended <- r.node.Run(ctx) }()
	select {
	case <-r.node.Ready():
		return r, nil
	case err := <-r.ended:
		r.end()
		r.pool.Close()
		return nil, fmt.Errorf("start the engine: %w", err)
	}
}

// stop ends the engine and its agent.
func (r *running) stop() error {
	r.end()
	err := <-r.ended
	r.pool.Close()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop the engine: %w", err)
	}
	return nil
}

// A result is what one measurement found.
type result struct {
	runs      int
	took      time.Duration
	latencies []time.Duration // of runs, sorted
	commits   int64
	rows      int64
}

func (r result) stepsPerSecond() float64 { return float64(r.runs*steps) / r.took.Seconds() }

func (r result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(len(r.latencies)-1, int(q*float64(len(r.latencies))))]
}

// load keeps a number of runs in flight for a while: each is submitted, waited
// for, and followed by the next. What ends after the while is not counted.
func (r *running) load(ctx context.Context, inFlight int, d time.Duration) (result, error) {
	commits, rows := r.store.commits.Load(), r.store.rows.Load()
	begin := time.Now()
	end := begin.Add(d)
	var mu sync.Mutex // protects latencies and errs
	var latencies []time.Duration
	var errs error
	var wg sync.WaitGroup
	for range inFlight {
		wg.Go(func() {
			var own []time.Duration
			err := func() error {
				for {
					at := time.Now()
					if !at.Before(end) {
						return nil
					}
					if err := r.once(ctx); err != nil {
						return err
					}
					if now := time.Now(); now.Before(end) {
						own = append(own, now.Sub(at))
					}
				}
			}()
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, own...)
			if errs == nil {
				errs = err
			}
		})
	}
	counts := make(chan [2]int64, 1)
	timer := time.AfterFunc(time.Until(end), func() { counts <- [2]int64{r.store.commits.Load(), r.store.rows.Load()} })
	defer timer.Stop()
	wg.Wait()
	if errs != nil {
		return result{}, errs
	}
	n := <-counts
	slices.Sort(latencies)
	return result{runs: len(latencies), took: d, latencies: latencies, commits: n[0] - commits, rows: n[1] - rows}, nil
}

// once takes one run to its end.
func (r *running) once(ctx context.Context) error {
	run, err := r.node.Submit(ctx, engine.Submission{Definition: r.wf.def, Workflow: "five", Vars: r.wf.vars, By: "bench"})
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	s, err := r.node.Wait(ctx, run.Run)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if s.Status() != machine.RunSucceeded {
		return fmt.Errorf("run %s: %s: %s", run.Name, s.Status(), s.Failure().Message)
	}
	return nil
}

// counted counts what reaches a store.
type counted struct {
	engine.Store
	commits, rows atomic.Int64
}

// OpenWriter wraps the store's writer.
func (c *counted) OpenWriter(ctx context.Context, id engine.EngineID, n int) (engine.Writer, error) {
	w, err := c.Store.OpenWriter(ctx, id, n)
	if err != nil {
		return nil, err
	}
	return &countedWriter{Writer: w, c: c}, nil
}

type countedWriter struct {
	engine.Writer
	c *counted
}

// Commit counts one commit and its rows.
func (w *countedWriter) Commit(ctx context.Context, batch []engine.Transition) ([]engine.Outcome, error) {
	w.c.commits.Add(1)
	w.c.rows.Add(int64(len(batch)))
	return w.Writer.Commit(ctx, batch)
}

// Submit counts one commit of one row.
func (w *countedWriter) Submit(ctx context.Context, t engine.Transition, s engine.Names) (engine.Submitted, error) {
	w.c.commits.Add(1)
	w.c.rows.Add(1)
	return w.Writer.Submit(ctx, t, s)
}
