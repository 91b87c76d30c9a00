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

// A Pool runs agents and calls them. It is safe for concurrent use; Close must
// be called in the end.
type Pool struct {
	opts  Options
	crowd crowd
	stop  chan struct{}  // closed by Close
	work  sync.WaitGroup // goroutines that end after stop

	mu     sync.Mutex // protects following fields
	agents map[string]*agent
	ctxs   map[<-chan struct{}]bool // by their Done: those whose end cuts calls off
	onFree []func(key string)
	closed bool
}

// A crowd counts the processes of all agents of a pool.
type crowd struct {
	most   int
	wanted atomic.Bool // an agent waits for a place
	making atomic.Bool // a goroutine looks for a process that can be ended

	mu      sync.Mutex // protects following fields; no other lock is taken under it
	running int
	waiting []*agent // those that found no place since one was free
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

// leave gives a place back and returns the agents that wait for one.
func (c *crowd) leave() []*agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	waiting := c.waiting
	c.waiting = nil
	c.wanted.Store(false)
	return waiting
}

// full reports whether there is no place for an agent without a process. Then it
// gets a hint when one is given back.
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

// An agent is what the calls of one AgentSpec.Key share: processes, limit and
// breaker.
type agent struct {
	pool    *Pool
	spec    invoke.AgentSpec
	breaker *breaker
	book    callBook
	births  atomic.Int64 // how many processes were to be started

	mu        sync.Mutex // protects following fields, and those of instances and lives
	reserved  int        // slots that the scheduler holds
	calls     int        // calls under way
	lastCall  time.Time  // when the last one began or ended, or a process started
	instances []*instance
	watched   *activeCall   // calls that the end of their ctx cuts off
	changed   chan struct{} // closed and replaced when an instance becomes ready or ends
}

// idleLocked reports whether no process is there or about to be.
func (a *agent) idleLocked() bool {
	return !slices.ContainsFunc(a.instances, func(i *instance) bool { return i.state != stateIdle })
}

// leastBusyLocked returns the healthy process with the most free capacity (S33,
// S69, S70), or nil.
func (a *agent) leastBusyLocked() *life {
	var best *life
	for _, i := range a.instances {
		if i.life.takesLocked() && (best == nil || i.life.calls < best.calls) {
			best = i.life
		}
	}
	return best
}

// restsLocked reports whether the agent has a process and no call.
func (a *agent) restsLocked() bool {
	return a.reserved == 0 && a.calls == 0 && a.leastBusyLocked() != nil
}

// downLocked says why no process is there or about to be, and until when; the
// error is nil otherwise.
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

// changedLocked wakes those who wait for a process.
func (a *agent) changedLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

const (
	stateIdle instanceState = iota // no process
	stateStarting
	stateReady
)

// instanceState is what an instance is doing.
type instanceState uint8

// An instance is one of an agent's places for a process.
type instance struct {
	agent  *agent
	number int // from 1

	// Protected by agent.mu.
	state     instanceState
	life      *life     // while ready: the process that is given calls
	old       []*life   // drained processes that have not ended, oldest first
	failures  int       // starts that failed and lives that were short, in a row
	notBefore time.Time // of the next start
	why       error     // of the last failure
}

// A life is one process of an instance, from its start to its end. It is given
// calls until it is drained: then it goes on with those that it has, each up to
// its complete-by, and ends.
type life struct {
	instance *instance
	birth    int64 // its number among the agent's processes, from 1
	process  *plugin.Process
	born     time.Time

	// Protected by agent.mu.
	calls     int       // under way, not counting those past their complete-by
	listening int       // calls past their complete-by that are listened to
	expired   int       // calls in a row that it did not answer in time
	since     time.Time // when the first of these expired calls passed its complete-by
	answered  time.Time // when it answered last
	missed    int       // signs of life in a row that are missing
	draining  string    // why it is given no more calls; "" = it is given calls
	empty     chan struct{}
}

// number is the process's among those of its agent; 0 = none.
func (l *life) number() int64 {
	if l == nil {
		return 0
	}
	return l.birth
}

// takesLocked reports whether calls can be sent.
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

// emptyLocked tells watch when a drained process has nothing left to do.
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

// leaveLocked ends a call of the process.
func (l *life) leaveLocked(now time.Time) {
	l.calls--
	l.instance.agent.lastCall = now
	l.emptyLocked()
}

// An activeCall is one call on its way through limit, breaker and process. It begins when
// the engine asks for the call, and ends when the pool does not wait for the agent's
// answer any more. Pool.work counts it that long. A goroutine waits for it only if no
// process is ready.
type activeCall struct {
	agent   *agent
	call    invoke.Call
	done    func(sdk.Reply, error)
	verdict func(error) // the breaker's; nil = it was not asked
	booked  bookedCall  // in agent.book

	// Protected by agent.mu.
	life      *life // the process that has the call
	counted   bool  // in life.calls
	listening bool  // in life.listening

	// Of a call whose ctx is watched; protected by agent.mu.
	ctx        context.Context
	prev, next *activeCall // in agent.watched

	mu      sync.Mutex // protects following fields
	over    bool       // done was called, or will be
	stopped bool       // the answer is not wanted any more
	sent    bool       // it was given to a process, which may have sent it
	search  context.CancelFunc
	ongoing *plugin.Ongoing
	// sendings counts how often it was given to a process: again where the one
	// before turned out to have ended.
	sendings int

	telling sync.Mutex // held while OnProgress is called
	quiet   bool       // protected by telling: it is not called any more
}

// Stop tells the agent that the answer is not wanted any more.
func (f *activeCall) Stop() {
	f.mu.Lock()
	f.stopped = true
	ongoing := f.ongoing
	f.mu.Unlock()
	if ongoing != nil {
		ongoing.Cancel()
	}
}
