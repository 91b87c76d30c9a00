package agents

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk/plugin"
)

func newAgent(p *Pool, spec invoke.AgentSpec) *agent {
	a := &agent{pool: p, spec: spec, changed: make(chan struct{})}
	a.breaker = newBreaker(spec.Name, spec.Breaker, func(t transition) {
		p.opts.Observer.CircuitChanged(CircuitChange{
			Agent: spec.Name, Key: spec.Key, From: t.from, To: t.to, Failures: t.failures, Until: t.until,
		})
		a.free()
	}, p.run)
	for n := range max(1, spec.Instances) {
		a.instances = append(a.instances, &instance{agent: a, number: n + 1})
	}
	return a
}

// notSent returns a *Deferred that contains the reason why a call was not sent.
func notSent(err error) error {
	var down *downError
	switch {
	case errors.As(err, &down):
		return &invoke.Deferred{Until: down.until, Why: down.err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &invoke.Deferred{Why: "complete-by passed before it could be sent"}
	case errors.Is(err, context.Canceled):
		return &invoke.Deferred{Why: "the engine did not need it any more before it could be sent"}
	}
	return &invoke.Deferred{Why: err.Error()}
}

// A downError says that the agent has no process, and that no process may start before the time
// `until`.
type downError struct {
	until time.Time
	err   error
}

func (e *downError) Error() string { return e.err.Error() }
func (e *downError) Unwrap() error { return e.err }

// startTries is how many times the method `check` starts the missing processes of an agent, if each
// process ends before it is ready. After the last try, check returns an error.
const startTries = 5

// check returns an error if the agent cannot be called. It starts the missing processes, even
// during the pause after a failed start, and waits until one process is ready. If only the limit of
// processes prevents the start, check returns nil. A process may end during its start for a reason
// outside of the agent: a person killed it, or the machine had no memory left. Then check tries
// again at once, up to startTries times in all.
func (a *agent) check(ctx context.Context) error {
	for try := 1; ; try++ {
		l, err := a.acquire(ctx, true)
		var down *downError
		switch {
		case err == nil:
			a.mu.Lock()
			l.leaveLocked(time.Now())
			a.mu.Unlock()
			return nil
		case !errors.As(err, &down):
			return err
		case errors.As(down.err, new(*crowdedError)):
			// The limit of processes prevents the start, so this error says nothing about the
			// agent.
			return nil
		case try == startTries || !diedAtStart(down.err):
			return down.err
		}
	}
}

// diedAtStart reports whether err says that a process ended before it was ready for calls.
func diedAtStart(err error) bool {
	var start *plugin.StartError
	return errors.As(err, &start) && start.Reason == plugin.ReasonExited
}

// readyLocked starts the processes of the agent that are missing, and does not wait until they are
// ready. It returns the process with the fewest calls among the processes that are ready now, and
// counts one more call for that process. It returns nil if no process is ready. If a process is
// missing and cannot start because the pool is closed, readyLocked returns errClosed. If the
// parameter `atOnce` is true, readyLocked starts processes even during the pause after a failed
// start.
func (a *agent) readyLocked(now time.Time, atOnce bool) (*life, error) {
	for _, i := range a.instances {
		if i.state == stateIdle && (atOnce || !now.Before(i.notBefore)) && !i.startLocked() {
			return nil, errClosed
		}
	}
	l := a.leastBusyLocked()
	if l != nil {
		l.calls++
		a.lastCall = now
	}
	return l, nil
}

// acquire waits until a process is ready, counts one more call for this process and returns it. If
// the parameter `atOnce` is true, acquire starts processes even during the pause after a failed
// start. The error is a *downError, the error of ctx, or errClosed.
func (a *agent) acquire(ctx context.Context, atOnce bool) (*life, error) {
	for {
		a.mu.Lock()
		now := time.Now()
		l, err := a.readyLocked(now, atOnce)
		if l != nil || err != nil {
			a.mu.Unlock()
			return l, err
		}
		atOnce = false
		if until, why := a.downLocked(now); why != nil {
			a.mu.Unlock()
			return nil, &downError{until: until, err: why}
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-a.pool.stop:
			return nil, errClosed
		}
	}
}

// watchLocked adds a call to the list agent.watched. The pool cuts off each call in this list
// when the call's ctx ends. A call without ctx is not added.
func (a *agent) watchLocked(f *activeCall) {
	if f.ctx == nil {
		return
	}
	if f.next = a.watched; f.next != nil {
		f.next.prev = f
	}
	a.watched = f
}

// unwatchLocked removes a call from the list agent.watched.
func (a *agent) unwatchLocked(f *activeCall) {
	if f.ctx == nil {
		return
	}
	if f.next != nil {
		f.next.prev = f.prev
	}
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		a.watched = f.next
	}
	f.ctx, f.prev, f.next = nil, nil, nil
}

// watchedBy returns the calls in agent.watched whose ctx has the given Done channel.
func (a *agent) watchedBy(done <-chan struct{}) []*activeCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*activeCall
	for f := a.watched; f != nil; f = f.next {
		if f.ctx.Done() == done {
			list = append(list, f)
		}
	}
	return list
}
