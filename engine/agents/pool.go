package agents

import (
	"context"
	"errors"
	"sync"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// A Pool runs agents and calls them. It is safe for concurrent use; Close must
// be called in the end.
type Pool struct {
	opts Options
	stop chan struct{}  // closed by Close
	work sync.WaitGroup // goroutines that end after stop

	mu     sync.Mutex // protects following fields
	agents map[string]*agent
	onFree []func(key string)
	closed bool
}

var (
	_ engine.Invoker  = (*Pool)(nil)
	_ engine.Capacity = (*Pool)(nil)
	_ engine.Checker  = (*Pool)(nil)
)

// NewPool makes a Pool. It starts nothing: processes start when they are first
// called, or by Check.
func NewPool(o Options) *Pool {
	return &Pool{opts: o.withDefaults(), stop: make(chan struct{}), agents: map[string]*agent{}}
}

// Invoke sends a call to a process of its agent. See engine.Invoker.
func (p *Pool) Invoke(ctx context.Context, call engine.Call) (sdk.Reply, error) {
	a, err := p.agent(call.Agent)
	if err != nil {
		return sdk.Reply{}, &engine.Deferred{Why: err.Error()}
	}
	return a.call(ctx, call)
}

// Check starts the agent, so that whatever would keep a run from calling it is
// known beforehand. It returns a *NotFoundError, *VersionError, *ChecksumError,
// *SecretError, *ConfigError or *plugin.StartError, or ctx's error.
func (p *Pool) Check(ctx context.Context, spec engine.AgentSpec) error {
	a, err := p.agent(spec)
	if err != nil {
		return err
	}
	return a.check(ctx)
}

// Slot returns what an agent can take now. See engine.Capacity.
func (p *Pool) Slot(spec engine.AgentSpec) machine.Slot {
	a, err := p.agent(spec)
	if err != nil {
		return machine.Slot{Why: err.Error()}
	}
	return a.slot()
}

// Reserve takes n slots of an agent, all or none. See engine.Capacity.
func (p *Pool) Reserve(spec engine.AgentSpec, n int) bool {
	a, err := p.agent(spec)
	return err == nil && a.reserve(n)
}

// Release gives n slots of an agent back. See engine.Capacity.
func (p *Pool) Release(spec engine.AgentSpec, n int) {
	p.mu.Lock()
	a := p.agents[spec.Key]
	p.mu.Unlock()
	if a != nil {
		a.release(n)
	}
}

// OnFree registers fn to be called whenever a slot of an agent may have become
// free. See engine.Capacity.
func (p *Pool) OnFree(fn func(key string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onFree = append(p.onFree, fn)
}

// free tells those who wait for slots.
func (p *Pool) free(key string) {
	p.mu.Lock()
	fns := p.onFree
	if p.closed {
		fns = nil
	}
	p.mu.Unlock()
	for _, fn := range fns {
		fn(key)
	}
}

var errClosed = errors.New("the engine is stopping")

func (p *Pool) agent(spec engine.AgentSpec) (*agent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	a := p.agents[spec.Key]
	if a == nil {
		a = newAgent(p, spec)
		p.agents[spec.Key] = a
	}
	return a, nil
}

// run starts a goroutine that Close waits for; it reports false after Close.
func (p *Pool) run(fn func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Go(fn)
	return true
}

// Close ends every process and waits for that: first in an orderly way, then by
// killing it. Calls that are out end with an unknown outcome. What comes later
// is deferred. It may be called several times.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.stop)
	}
	agents := p.agents
	p.mu.Unlock()
	for _, a := range agents {
		a.breaker.stop()
	}
	p.work.Wait()
}
