package agents

import (
	"context"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
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

// Invoke sends a call to a process of its agent and waits for the reply. See invoke.Invoker.
func (p *Pool) Invoke(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
	if err := ctx.Err(); err != nil {
		return sdk.Reply{}, notSent(err)
	}
	type result struct {
		reply sdk.Reply
		err   error
	}
	done := make(chan result, 1)
	f := &activeCall{call: call, done: func(reply sdk.Reply, err error) { done <- result{reply, err} }}
	p.launch(f)
	for stop := call.Stop; ; {
		select {
		case r := <-done:
			return r.reply, r.err
		case <-stop:
			f.Stop()
			stop = nil
		case <-ctx.Done():
			f.cut(ctx.Err())
			r := <-done
			return r.reply, r.err
		}
	}
}

// Start sends a call to a process of its agent and does not wait for the reply. Later the Pool
// passes the reply or an error to the function in the parameter `done`. See invoke.AsyncInvoker.
func (p *Pool) Start(ctx context.Context, call invoke.Call, done func(sdk.Reply, error)) invoke.Started {
	f := &activeCall{call: call, done: done}
	if err := ctx.Err(); err != nil {
		f.fail(notSent(err))
		return nil
	}
	if ctx.Done() != nil {
		f.ctx = ctx
		p.watch(ctx)
	}
	p.launch(f)
	if err := ctx.Err(); err != nil {
		f.cut(err) // ctx may have ended before the call was in agent.watched
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over && !f.sent {
		return nil
	}
	return f
}

func (p *Pool) launch(f *activeCall) {
	p.mu.Lock()
	a, err := p.agentLocked(&f.call.Agent)
	if err != nil {
		p.mu.Unlock()
		f.fail(&invoke.Deferred{Why: err.Error()})
		return
	}
	p.work.Add(1)
	p.mu.Unlock()
	f.agent = a
	f.start()
}

// Check starts a process of the agent if none is ready. So every reason that prevents calls is
// found before the run starts. The error is a *NotFoundError, *VersionError, *ChecksumError,
// *SecretError, *ConfigError or *plugin.StartError, or the error of ctx.
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

// watch registers a function that cuts off all calls with this ctx when ctx ends. If several
// calls have the same ctx, only the first call of watch registers a function.
func (p *Pool) watch(ctx context.Context) {
	done := ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctxs[done] {
		return
	}
	p.ctxs[done] = true
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		delete(p.ctxs, done)
		agents := make([]*agent, 0, len(p.agents))
		for _, a := range p.agents {
			agents = append(agents, a)
		}
		p.mu.Unlock()
		for _, a := range agents {
			for _, f := range a.watchedBy(done) {
				f.cut(ctx.Err())
			}
		}
	})
}
