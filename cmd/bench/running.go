package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/snapshots"
	"github.com/saga-engine/engine/engine/telemetry"
	"github.com/saga-engine/engine/sdk"
)

// A setup says which store, agent and options an engine of the benchmark gets.
type setup struct {
	store   store.Store
	options engine.Options
	// If `unary` is true, each call of the agent has its own stream. If it is false, the calls go
	// in batches over one stream.
	unary   bool
	invoker invoke.Invoker // used instead of an agent; nil = start a process of the mock agent
	// Used instead of the real capacity of the agent; nil = the real capacity.
	full invoke.Capacity
	// Database of the store, to measure the costs of the server; nil = no server.
	d *database
}

// The type running holds an engine that works, with its agent and its store.
type running struct {
	work   *work
	store  *counted
	d      *database
	pool   *agents.Pool // pool of agent processes; nil = the engine calls no processes
	procs  *processes
	node   *engine.Node
	engine store.EngineID // id that the engine got at its start
	// sink gets the replies of all submitted runs; "" = the runs have no replies.
	sink  string
	end   context.CancelFunc
	ended chan error
}

// start starts an engine in this process, and waits until the engine is ready. The agent runs
// in another process.
func start(ctx context.Context, w *work, s setup) (*running, error) {
	r := &running{work: w, store: newCounted(s.store), d: s.d, procs: &processes{}, ended: make(chan error, 1)}
	// Use the same telemetry as `engine serve`.
	cfg := engine.Config{Store: r.store.whole(), Invoker: s.invoker, Capacity: s.full, Options: s.options, Observer: telemetry.New(nil)}
	if s.invoker == nil {
		r.pool = newPool(w, s.unary, r.procs)
		cfg.Invoker = r.pool
		if s.full == nil {
			cfg.Capacity = r.pool
		}
	}
	cfg.Options.Address = "bench"
	var err error
	if r.node, err = engine.NewNode(cfg); err != nil {
		r.closePool()
		return nil, err
	}
	ctx, r.end = context.WithCancel(ctx)
	go func() { r.ended <- r.node.Run(ctx) }()
	select {
	case <-r.node.Ready():
		r.engine = r.node.Engine()
		return r, nil
	case err := <-r.ended:
		r.end()
		r.closePool()
		return nil, fmt.Errorf("start the engine: %w", err)
	}
}

// stop ends the engine in an orderly way, and then its agent.
func (r *running) stop() error {
	r.end()
	return r.stopped()
}

// stopNow ends the engine and its agent without waiting for calls in flight. Another engine can
// take over the runs later.
func (r *running) stopNow() error {
	r.node.StopNow()
	return r.stopped()
}

func (r *running) stopped() error {
	err := <-r.ended
	r.end()
	r.closePool()
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, engine.ErrStopping) {
		return fmt.Errorf("stop the engine: %w", err)
	}
	return nil
}

func (r *running) closePool() {
	if r.pool != nil {
		r.pool.Close()
	}
}

// replying returns a copy of r for the same engine. The runs that the copy submits have
// replies, which go to the sink.
func (r *running) replying(sink string) *running {
	other := *r
	other.sink = sink
	return &other
}

func (r *running) submit(ctx context.Context, workflow string) (store.Submitted, error) {
	return r.node.Submit(ctx, engine.Submission{Definition: r.work.def, Workflow: workflow, Vars: r.work.vars, By: "bench", ReplyTo: r.sink})
}

// once is the method that submits one run of a workflow and waits for its end. The parameter `end`
// is the expected status of the ended run. If the run has another status, once returns an error.
func (r *running) once(ctx context.Context, workflow string, end status.RunState) error {
	run, err := r.submit(ctx, workflow)
	if err != nil {
		return err
	}
	s, err := r.node.Wait(ctx, run.Run)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if s.Status() != end {
		return fmt.Errorf("run %s: %s: %s", run.Name, s.Status(), s.Failure().Message)
	}
	return nil
}

// quiet waits until the engine has committed nothing for half a second.
func (r *running) quiet(ctx context.Context) error {
	const still = 500 * time.Millisecond
	for last := int64(-1); ; {
		rows := r.store.rows.Load()
		if rows == last {
			return nil
		}
		last = rows
		if err := pause.For(ctx, still); err != nil {
			return err
		}
	}
}

// busy returns when the engine has committed nothing for a second, or when the time in the
// parameter `limit` has passed. The result is the time at which busy saw the last commit.
func (r *running) busy(ctx context.Context, limit time.Duration) (time.Time, error) {
	const still, look = time.Second, 50 * time.Millisecond
	began := time.Now()
	last := began
	for rows := int64(-1); time.Since(began) < limit && time.Since(last) < still; {
		if n := r.store.rows.Load(); n != rows {
			rows, last = n, time.Now()
		}
		if err := pause.For(ctx, look); err != nil {
			return last, err
		}
	}
	return last, nil
}

// usage returns the costs of the engine, its agent and its PostgreSQL server so far.
func (r *running) usage(ctx context.Context) (u usage, err error) {
	if u.engine, _, err = processCPU(os.Getpid(), false); err != nil {
		return u, err
	}
	u.agent = r.procs.cpu()
	u.commits = float64(r.store.commits.Load())
	if r.d == nil {
		return u, nil
	}
	// The next transaction id grows with each transaction that writes: PostgreSQL gives no id to
	// a transaction that only reads. So a difference of two such ids counts transactions.
	err = r.d.db.QueryRowContext(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8, txid_snapshot_xmax(txid_current_snapshot())::float8`).Scan(&u.log, &u.commits)
	if err == nil {
		u.server, err = r.d.serverCPU(ctx)
	}
	return u, err
}

// newPool makes a pool of processes of the mock agent. If `unary` is true, each call has its own
// stream. Otherwise all calls of a process use one stream, in batches.
func newPool(w *work, unary bool, procs *processes) *agents.Pool {
	return agents.NewPool(agents.Options{Catalog: w.catalog, Observer: procs, Unary: unary})
}

// processes records which agent processes are running. It is an observer of the pool.
type processes struct {
	agents.NoObserver
	mu   sync.Mutex   // protects the field `pids`
	pids map[int]bool // ids of the running processes
}

// ProcessStarted adds the process to the list of running processes.
func (p *processes) ProcessStarted(info agents.ProcessInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pids == nil {
		p.pids = map[int]bool{}
	}
	p.pids[info.Pid] = true
}

// ProcessEnded removes the process from the list of running processes.
func (p *processes) ProcessEnded(info agents.ProcessInfo, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pids, info.Pid)
}

// cpu returns the CPU time that the running agent processes have used so far.
func (p *processes) cpu() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum time.Duration
	for pid := range p.pids {
		// An error means that the process has just ended.
		if used, _, err := processCPU(pid, true); err == nil {
			sum += used
		}
	}
	return sum
}

// counted is a store that counts commits and their rows.
type counted struct {
	store.Full
	snapshots.Keeper
	commits, rows atomic.Int64
}

// newCounted wraps a store. If the store keeps snapshots, the result keeps snapshots, too.
func newCounted(s store.Store) *counted {
	c := &counted{Full: store.Complete(s), Keeper: noSnapshots{}}
	if role, ok := snapshots.Of(c.Full); ok {
		c.Keeper = role
	}
	return c
}

// whole returns the store for an engine. The type `counted` hides the optional roles of a
// PostgreSQL store, such as schedules and events. So for PostgreSQL the result has the type
// `countedPostgres`, which has all roles.
func (c *counted) whole() store.Store {
	if pg, ok := c.Store.(*postgres.Store); ok {
		return &countedPostgres{pg, c}
	}
	return c
}

// A countedPostgres is a PostgreSQL store with all its roles. It counts commits and their rows.
type countedPostgres struct {
	*postgres.Store
	c *counted
}

// OpenWriter returns a writer that counts its commits and their rows.
func (s *countedPostgres) OpenWriter(ctx context.Context, id store.EngineID, n int) (store.Writer, error) {
	return s.c.OpenWriter(ctx, id, n)
}

// A noSnapshots is a Keeper that stores no snapshots.
type noSnapshots struct{ snapshots.Keeper }

// KeepSnapshot stores nothing.
func (noSnapshots) KeepSnapshot(context.Context, store.EngineID, snapshots.Snapshot) error {
	return nil
}

// Snapshotted finds no snapshot.
func (noSnapshots) Snapshotted(context.Context, ...status.RunID) ([]status.RunID, error) {
	return nil, nil
}

// OpenWriter returns a writer that counts its commits and their rows.
func (c *counted) OpenWriter(ctx context.Context, id store.EngineID, n int) (store.Writer, error) {
	w, err := c.Store.OpenWriter(ctx, id, n)
	if err != nil {
		return nil, err
	}
	return &countedWriter{Writer: w, c: c}, nil
}

type countedWriter struct {
	store.Writer
	c *counted
}

// Commit counts one commit and its rows.
func (w *countedWriter) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	w.c.commits.Add(1)
	w.c.rows.Add(int64(len(batch)))
	return w.Writer.Commit(ctx, batch)
}

// mute replaces an agent: it accepts any number of calls and answers none. With it, the
// benchmark measures only the claims of runs and the starts of their first steps. mute must
// accept calls, because an engine whose agents have no free slot claims no runs.
type mute struct{}

// Invoke waits until ctx ends, and returns its error.
func (mute) Invoke(ctx context.Context, _ invoke.Call) (sdk.Reply, error) {
	<-ctx.Done()
	return sdk.Reply{}, ctx.Err()
}

// Start begins a call that gets no answer. When ctx ends, the function `done` is called with the
// error of ctx.
func (mute) Start(ctx context.Context, _ invoke.Call, done func(sdk.Reply, error)) invoke.Started {
	context.AfterFunc(ctx, func() { done(sdk.Reply{}, ctx.Err()) })
	return mute{}
}

// Stop does nothing.
func (mute) Stop() {}

var _ invoke.AsyncInvoker = mute{}

// silent is an Invoker that the engine never calls. It is used together with the type `occupied`,
// which reports that no agent has a free slot.
type silent struct{}

// Invoke refuses the call.
func (silent) Invoke(context.Context, invoke.Call) (sdk.Reply, error) {
	return sdk.Reply{}, &invoke.Deferred{Why: "no agent has room"}
}

// occupied is a Capacity of agents that never have a free slot.
type occupied struct{}

// Slot reports that no call may start.
func (occupied) Slot(invoke.AgentSpec) machine.Slot { return machine.Slot{Why: "full"} }

// Reserve reports that no slot is free.
func (occupied) Reserve(invoke.AgentSpec, int) bool { return false }

// Release does nothing, because no slot is ever reserved.
func (occupied) Release(invoke.AgentSpec, int) {}

// OnFree ignores the function, because no slot ever becomes free.
func (occupied) OnFree(func(key string)) {}
