package agents

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// A Pool runs agents and calls them. It is safe for concurrent use. The caller must call
// Close at the end.
type Pool struct {
	opts  Options
	crowd crowd
	stop  chan struct{}  // closed by Close
	work  sync.WaitGroup // goroutines and calls whose end Close waits for

	mu     sync.Mutex // protects following fields
	agents map[string]*agent
	ctxs   map[<-chan struct{}]bool // Done channels of the contexts whose end is watched
	onFree []func(key string)
	closed bool
}

// A crowd counts and limits the processes of all agents of a pool.
type crowd struct {
	most   int
	wanted atomic.Bool // an agent waits for a place
	making atomic.Bool // a goroutine is looking for a process that can be ended

	mu      sync.Mutex // protects following fields; no other lock is taken while it is held
	running int
	waiting []*agent // agents that found no place; each is notified when a place becomes free
}

// enter takes a place for a process. further is true if the agent has a process already.
// All further processes together may take half of the places. The other half is kept for
// agents without a process, so that many instances of one agent cannot stop the others.
func (c *crowd) enter(further bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running >= c.most || further && c.running >= max(1, c.most/2) {
		return false
	}
	c.running++
	return true
}

// leave gives a place back, and returns the agents that wait for one.
func (c *crowd) leave() []*agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	waiting := c.waiting
	c.waiting = nil
	c.wanted.Store(false)
	return waiting
}

// full reports whether there is no place for an agent without a process. If so, the agent
// is notified when a place becomes free.
func (c *crowd) full(a *agent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running < c.most {
		return false
	}
	if !slices.Contains(c.waiting, a) {
		c.waiting = append(c.waiting, a)
	}
	c.wanted.Store(true)
	return true
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

// Close ends every process and waits for the end: first in an orderly way, then by killing.
// Calls in flight end with an unknown outcome. Later calls are deferred. Close may be
// called several times.
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

// known returns all agents.
func (p *Pool) known() []*agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	agents := make([]*agent, 0, len(p.agents))
	for _, a := range p.agents {
		agents = append(agents, a)
	}
	return agents
}

var errClosed = errors.New("the engine is stopping")

// An agent is shared by all calls with the same AgentSpec.Key: its processes, its limit and
// its breaker.
type agent struct {
	pool    *Pool
	spec    invoke.AgentSpec
	breaker *breaker
	book    callBook
	births  atomic.Int64 // number of starts of processes, including failed starts

	mu        sync.Mutex // protects following fields, and fields of instances and lives
	reserved  int        // number of slots that the scheduler has reserved
	calls     int        // number of calls in progress
	lastCall  time.Time  // time of the last start or end of a call, or of the last start of a process
	instances []*instance
	watched   *activeCall   // first of the calls that are cut off when their ctx ends
	changed   chan struct{} // closed and replaced when an instance becomes ready or ends
}

// idleLocked reports whether no process is running or starting.
func (a *agent) idleLocked() bool {
	return !slices.ContainsFunc(a.instances, func(i *instance) bool { return i.state != stateIdle })
}

// leastBusyLocked returns the healthy process with the fewest calls (S33, S69, S70), or
// nil.
func (a *agent) leastBusyLocked() *life {
	var best *life
	for _, i := range a.instances {
		if i.life.takesLocked() && (best == nil || i.life.calls < best.calls) {
			best = i.life
		}
	}
	return best
}

// restsLocked reports whether the agent has a process but no call.
func (a *agent) restsLocked() bool {
	return a.reserved == 0 && a.calls == 0 && a.leastBusyLocked() != nil
}

// downLocked returns the time of the next possible start, and the reason why no process is
// running or starting. The reason is nil if a process is running, starting, or may be started
// now.
func (a *agent) downLocked(now time.Time) (time.Time, error) {
	first := slices.MinFunc(a.instances, func(x, y *instance) int { return x.notBefore.Compare(y.notBefore) })
	for _, i := range a.instances {
		if i.state != stateIdle || !now.Before(i.notBefore) {
			return time.Time{}, nil
		}
	}
	return first.notBefore, cmp.Or(first.why, errNoReason)
}

var errNoReason = errors.New("the agent's process has ended")

// changedLocked wakes the goroutines that wait for a process.
func (a *agent) changedLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

const (
	stateIdle instanceState = iota // there is no process
	stateStarting
	stateReady
)

// instanceState says what an instance is doing.
type instanceState uint8

// An instance is a place for one process of an agent. Over time it may have several
// processes, one after the other.
type instance struct {
	agent  *agent
	number int // number of the instance, from 1

	// Protected by agent.mu.
	state     instanceState
	life      *life     // the process that gets calls; nil if there is none
	old       []*life   // drained processes that have not ended, oldest first
	failures  int       // number of failed starts and short lives in a row
	notBefore time.Time // time before which no process is started
	why       error     // reason of the last failure
}

// A life is one process of an instance, from its start to its end. It gets calls until it
// is drained. Then it continues with the calls that it has, each until its complete-by, and
// ends.
type life struct {
	instance *instance
	birth    int64 // number of the process, from 1; each agent numbers its own processes
	process  *plugin.Process
	born     time.Time

	// Protected by agent.mu.
	calls     int       // number of calls in progress, without those past their complete-by
	listening int       // number of calls past their complete-by whose answer is still waited for
	expired   int       // number of calls in a row that the process did not answer in time
	since     time.Time // when the first of the calls that expired counts passed its complete-by
	answered  time.Time // time of the last answer
	missed    int       // number of signs of life in a row that were missing
	draining  string    // why the process gets no more calls; "" = it gets calls
	empty     chan struct{}
}

// number returns the number of the process among those of its agent; 0 = there is no
// process.
func (l *life) number() int64 {
	if l == nil {
		return 0
	}
	return l.birth
}

// takesLocked reports whether the process can get calls.
func (l *life) takesLocked() bool { return l != nil && l.draining == "" && l.process.Err() == nil }

// retireLocked ends a process that has no call.
func (l *life) retireLocked() {
	i := l.instance
	l.draining = "idle"
	i.old = append(i.old, l)
	i.state, i.life, i.why, i.notBefore, i.failures = stateIdle, nil, nil, time.Time{}, 0
	l.emptyLocked()
	i.agent.changedLocked()
}

// emptyLocked notifies life.watch if the process is drained and has no call left.
func (l *life) emptyLocked() {
	if l.draining == "" || l.calls > 0 {
		return
	}
	select {
	case <-l.empty:
	default:
		close(l.empty)
	}
}

// leaveLocked removes a call that has ended from the number of calls of the process.
func (l *life) leaveLocked(now time.Time) {
	l.calls--
	l.instance.agent.lastCall = now
	l.emptyLocked()
}

// An activeCall is one call that passes through the concurrency limit, the circuit breaker
// and the process. It begins when the engine starts the call. It ends when the pool does not
// wait for the agent's answer any more. Until then it counts in Pool.work. It needs a
// goroutine of its own only while no process is ready.
type activeCall struct {
	agent   *agent
	call    invoke.Call
	done    func(sdk.Reply, error)
	verdict func(error) // reports the outcome of the call to the breaker; nil = the breaker was not asked
	booked  bookedCall  // the entry for this call in agent.book

	// Protected by agent.mu.
	life      *life // the process that has the call
	counted   bool  // the call counts in life.calls
	listening bool  // the call counts in life.listening

	// Only for a call whose ctx is watched; protected by agent.mu.
	ctx        context.Context
	prev, next *activeCall // neighbours in the list agent.watched

	mu      sync.Mutex // protects following fields
	over    bool       // done was called, or will be called
	stopped bool       // Stop was called: the answer is not needed any more
	sent    bool       // the call was given to a process, which may have sent it
	search  context.CancelFunc
	ongoing *plugin.Ongoing
	// sendings is how many times the call was given to a process. It is given to another
	// process if it is certain that the former one never received it.
	sendings int

	telling sync.Mutex // held while OnProgress is called
	quiet   bool       // OnProgress is not called any more; protected by telling
}

// Stop notifies the agent that the answer is not needed any more.
func (f *activeCall) Stop() {
	f.mu.Lock()
	f.stopped = true
	ongoing := f.ongoing
	f.mu.Unlock()
	if ongoing != nil {
		ongoing.Cancel()
	}
}
