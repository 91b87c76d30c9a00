package agents

import (
	"cmp"
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
)

var (
	_ invoke.AsyncInvoker = (*Pool)(nil)
	_ invoke.Capacity     = (*Pool)(nil)
	_ invoke.Checker      = (*Pool)(nil)
)

// NewPool returns a Pool without processes. The first call of an agent, or the method Check, starts
// the agent's processes.
func NewPool(o Options) *Pool {
	o = o.withDefaults()
	return &Pool{opts: o, crowd: crowd{most: o.MaxProcesses}, stop: make(chan struct{}), agents: map[string]*agent{}, ctxs: map[<-chan struct{}]bool{}}
}

// Check starts the missing processes of the agent, and waits until one process is ready. So the
// caller finds the reasons that prevent calls before the run starts. If only the limit of processes
// prevents the start, Check returns nil. The error is usually a *NotFoundError, *VersionError,
// *ChecksumError, *UnlockedError, *SecretError, *ConfigError or *plugin.StartError, or the error of
// ctx. If the Pool is closed, the error is errClosed.
func (p *Pool) Check(ctx context.Context, spec invoke.AgentSpec) error {
	a, err := p.agent(spec)
	if err != nil {
		return err
	}
	return a.check(ctx)
}

// Slot returns how many calls an agent can take now. See invoke.Capacity.
func (p *Pool) Slot(spec invoke.AgentSpec) machine.Slot {
	a, err := p.agent(spec)
	if err != nil {
		return machine.Slot{Why: err.Error()}
	}
	return a.slot()
}

// Reserve takes n slots of an agent. If fewer are free, it takes none and returns false. See
// invoke.Capacity.
func (p *Pool) Reserve(spec invoke.AgentSpec, n int) bool {
	a, err := p.agent(spec)
	return err == nil && a.reserve(n)
}

// Release gives n slots of an agent back. See invoke.Capacity.
func (p *Pool) Release(spec invoke.AgentSpec, n int) {
	p.mu.Lock()
	a := p.agents[spec.Key]
	p.mu.Unlock()
	if a != nil {
		a.release(n)
	}
}

// OnFree registers fn. The Pool calls fn with the agent's key whenever a slot of the agent may
// have become free. See invoke.Capacity.
func (p *Pool) OnFree(fn func(key string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onFree = append(p.onFree, fn)
}

// Status returns a description of each agent that was passed to Invoke, Start, Check, Slot or
// Reserve, sorted by name.
func (p *Pool) Status() []AgentStatus {
	known := p.known()
	slices.SortFunc(known, func(x, y *agent) int {
		return cmp.Or(cmp.Compare(x.spec.Name, y.spec.Name), cmp.Compare(x.spec.Key, y.spec.Key))
	})
	list := make([]AgentStatus, 0, len(known))
	for _, a := range known {
		list = append(list, a.status())
	}
	return list
}

func (p *Pool) agent(spec invoke.AgentSpec) (*agent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agentLocked(&spec)
}

func (p *Pool) agentLocked(spec *invoke.AgentSpec) (*agent, error) {
	if p.closed {
		return nil, errClosed
	}
	a := p.agents[spec.Key]
	if a == nil {
		a = newAgent(p, *spec)
		p.agents[spec.Key] = a
	}
	return a, nil
}
