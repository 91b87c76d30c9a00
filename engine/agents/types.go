package agents

import (
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
	work  sync.WaitGroup // goroutines and calls; Close waits for their end

	mu     sync.Mutex               // protects the fields below
	agents map[string]*agent        // agents that were used, by AgentSpec.Key
	ctxs   map[<-chan struct{}]bool // Done channels of the contexts that the method `watch` has registered
	onFree []func(key string)       // functions that OnFree has registered
	closed bool                     // true = Close was called
}

// A crowd counts and limits the processes of all agents of a pool. To start a process, an agent
// calls the method `enter`. After the end of the process, it calls the method `leave`.
type crowd struct {
	most   int         // largest number of processes
	wanted atomic.Bool // true = an agent waits until it may start a process
	making atomic.Bool // true = Pool.endIdle is running or will run soon

	mu      sync.Mutex // protects the fields below; no other lock is taken while it is held
	running int        // number of processes that are running or starting
	waiting []*agent   // agents that wait until they may start a process
}

// enter counts a new process. It returns false if the process must not start. If `further` is true,
// the agent has a process already. Then the new process may start only while fewer processes run
// than the method `further` returns. So agents with many processes leave space for agents that have
// no process.
func (c *crowd) enter(further bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running >= c.most || further && c.running >= c.further() {
		return false
	}
	c.running++
	return true
}

// further returns the number of processes from which on an agent that has a process gets no further
// one: crowd.most / 2, rounded down, but at least 1.
func (c *crowd) further() int { return max(1, c.most/2) }

// leave is called when a process has ended or could not be started, so that another process may
// start. It returns the agents that wait until they may start a process, and empties the list of
// these agents.
func (c *crowd) leave() []*agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	waiting := c.waiting
	c.waiting = nil
	c.wanted.Store(false)
	return waiting
}

// full reports whether the largest allowed number of processes runs. If so, it adds the agent a to
// the agents that may try again when a process has ended.
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

// run calls fn in a new goroutine and returns true. Pool.Close waits for the end of this goroutine.
// If Close was called before, run does nothing and returns false.
func (p *Pool) run(fn func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Go(fn)
	return true
}

// Close ends every process, and returns when all processes have ended. It asks each process to end,
// and kills a process that takes longer than Options.CloseGrace. The agents cancel the calls in
// flight. A call that was sent and gets no answer has an unknown outcome. Later calls are deferred.
// Close may be called several times.
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

// known returns all agents that were passed to Invoke, Start, Check, Slot or Reserve.
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

// An agent holds the processes, the limit of calls and the breaker that all calls with the same
// AgentSpec.Key share.
type agent struct {
	pool    *Pool
	spec    invoke.AgentSpec
	breaker *breaker
	book    callBook     // calls that a line in the agent's log may belong to
	births  atomic.Int64 // number of starts of processes, including failed starts

	mu        sync.Mutex // protects the fields below, and fields of instances and lives
	reserved  int        // number of slots that the scheduler has reserved
	calls     int        // number of calls in progress
	lastCall  time.Time  // time of the last start or end of a call, or of the last start of a process
	instances []*instance
	watched   *activeCall // first in a list of calls that are cut off when their ctx ends; nil = empty list
	// changed is closed and replaced in three cases: an instance gets or loses its process; a start
	// fails; a process has ended, and instances for which there was no space before may try again.
	changed chan struct{}
}

// idleLocked reports whether the agent has no process that is running or starting.
func (a *agent) idleLocked() bool {
	return !slices.ContainsFunc(a.instances, func(i *instance) bool { return i.state != stateIdle })
}

// leastBusyLocked returns the process with the fewest calls among those that can get calls
// (S33, S69, S70). It returns nil if there is none.
func (a *agent) leastBusyLocked() *life {
	var best *life
	for _, i := range a.instances {
		if i.life.takesLocked() && (best == nil || i.life.calls < best.calls) {
			best = i.life
		}
	}
	return best
}

// restsLocked reports whether the agent has a process that can get calls, but has no call in
// progress and no reserved slot.
func (a *agent) restsLocked() bool {
	return a.reserved == 0 && a.calls == 0 && a.leastBusyLocked() != nil
}

// changedLocked wakes the goroutines that wait for a process in the method `acquire`.
func (a *agent) changedLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

const (
	stateIdle instanceState = iota // there is no process
	stateStarting
	stateReady
)

// instanceState says whether an instance has a process.
type instanceState uint8

// An instance runs one process of an agent. After the end of this process, the instance may start
// another one. An agent has one instance for each process that it should have (instances = N).
type instance struct {
	agent  *agent
	number int // number of the instance, from 1; each agent numbers its own instances

	// The fields from here on are protected by agent.mu.
	state instanceState
	life  *life   // the process that gets calls; nil = there is none
	old   []*life // replaced processes that have not ended yet, oldest first
	// Number of processes in a row that failed to start or ran less than Options.Stable. A start
	// that failed with a SecretError does not count.
	failures  int
	notBefore time.Time // time before which no process is started; zero = a process may start now
	why       error     // why the instance has no process; nil = it was not started or was idle
}

// A life is one process of an instance, from the start to the end of the process. A drained process
// gets no new calls. It finishes its calls, and then it ends. It works on each call at most until
// the call's complete-by.
type life struct {
	instance *instance
	birth    int64 // number of the process, from 1; each agent numbers its own processes
	process  *plugin.Process
	born     time.Time // time at which the process became ready for calls

	// The fields from here on are protected by agent.mu.
	calls     int // number of calls in progress, without those past their complete-by
	listening int // number of calls past their complete-by for which the pool waits for a late reply
	expired   int // number of calls in a row that the process did not answer in time
	// Time at which the first of the calls that the field `expired` counts was not answered in
	// time.
	since    time.Time
	answered time.Time     // time of the last answer; zero = there was none
	missed   int           // number of signs of life in a row that were missing
	draining string        // why the process gets no more calls; "" = it gets calls
	empty    chan struct{} // closed when the process gets no more calls and its last call has ended
}

// number returns the number of the process, from 1; each agent numbers its own processes. It
// returns 0 if l is nil.
func (l *life) number() int64 {
	if l == nil {
		return 0
	}
	return l.birth
}

// takesLocked reports whether the process can get calls: it exists, it runs, and l.draining gives
// no reason against new calls.
func (l *life) takesLocked() bool { return l != nil && l.draining == "" && l.process.Err() == nil }

// retireLocked ends a process that has no call. The instance may start another process at once.
func (l *life) retireLocked() {
	i := l.instance
	l.draining = "idle"
	i.old = append(i.old, l)
	i.state, i.life, i.why, i.notBefore, i.failures = stateIdle, nil, nil, time.Time{}, 0
	l.emptyLocked()
	i.agent.changedLocked()
}

// emptyLocked closes l.empty if the process gets no more calls and its last call has ended. Then
// the method `watch` ends the process.
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

// leaveLocked subtracts a call that has ended from the number of calls of the process.
func (l *life) leaveLocked(now time.Time) {
	l.calls--
	l.instance.agent.lastCall = now
	l.emptyLocked()
}

// An activeCall is one call on its way through the concurrency limit, the breaker and a process. It
// begins when the engine starts the call. It ends when the pool does not wait for the agent's
// answer any more. Pool.Close waits for the end of every activeCall. A separate goroutine runs for
// the call only while the call waits for a process, or is given to another process.
type activeCall struct {
	agent   *agent
	call    invoke.Call
	done    func(sdk.Reply, error) // receives the outcome of the call, once
	verdict func(error)            // gives the verdict on the call to the breaker; nil = the call has not passed the breaker
	booked  bookedCall             // the entry for this call in agent.book

	// Protected by agent.mu: life, counted and listening.
	life      *life // the process that has the call; nil = none yet
	counted   bool  // true = life.calls includes the call
	listening bool  // true = life.listening includes the call

	// ctx is the context whose end cuts off the call; nil = the call is not in agent.watched.
	// ctx, prev and next are protected by agent.mu.
	ctx        context.Context
	prev, next *activeCall // neighbours in the list agent.watched

	mu      sync.Mutex         // protects the fields below
	over    bool               // true = the function `done` was called, or is about to be called
	stopped bool               // Stop was called: the answer is not needed any more
	sent    bool               // the call was given to a process, so the agent may have received it
	search  context.CancelFunc // ends the wait for a process; nil = the call does not wait
	ongoing *plugin.Ongoing    // the call in the process; nil = the call is in no process
	// sendings is how many times the call was given to a process. It can be more than 1: if a
	// process has certainly not received the call, the call is given to another process.
	sendings int

	reporting sync.Mutex // held while OnProgress is called
	silenced  bool       // OnProgress must not be called any more; protected by the mutex `reporting`
}

// Stop notifies the agent that the engine does not need the answer any more.
func (f *activeCall) Stop() {
	f.mu.Lock()
	f.stopped = true
	ongoing := f.ongoing
	f.mu.Unlock()
	if ongoing != nil {
		ongoing.Cancel()
	}
}
