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
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk/plugin"
)

// unlimited is the number of slots of an agent without max_concurrency.
const unlimited = 1 << 30

// An agent holds everything that calls with the same AgentSpec.Key share: processes, limit
// and breaker.
type agent struct {
	pool    *Pool
	spec    invoke.AgentSpec
	breaker *breaker
	book    callBook
	births  atomic.Int64 // number of processes whose start was begun

	mu        sync.Mutex // protects following fields, and fields of instances and lives
	reserved  int        // number of slots that the scheduler has reserved
	calls     int        // number of calls in progress
	lastCall  time.Time  // time of the last start or end of a call, or of the last start of a process
	instances []*instance
	watched   *activeCall   // list of calls that are cut off when their ctx ends
	changed   chan struct{} // closed and replaced when an instance becomes ready or ends
}

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

// slot returns how many calls the agent can take now.
func (a *agent) slot() machine.Slot {
	room, until, limited := a.breaker.room()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.slotLocked(room, until, limited)
}

func (a *agent) slotLocked(room int, until time.Time, limited bool) machine.Slot {
	if limited && !until.IsZero() {
		return machine.Slot{Until: until, Why: "circuit open"}
	}
	if a.idleLocked() {
		if a.pool.crowd.full(a) {
			a.pool.wantRoom()
			return machine.Slot{Why: (&crowdedError{a.pool.crowd.most}).Error()}
		}
		if until, why := a.downLocked(time.Now()); why != nil {
			return machine.Slot{Until: until, Why: why.Error()}
		}
	}
	free := unlimited
	if a.spec.MaxConcurrency > 0 {
		free = max(0, a.spec.MaxConcurrency-max(a.reserved, a.calls))
	}
	why := "full"
	if limited {
		// Calls that have reserved a slot but are not known to the breaker yet.
		waiting := max(0, a.reserved-a.calls)
		if probes := max(0, room-waiting); probes < free {
			free, why = probes, "circuit half-open, probe under way"
		}
	}
	if free > 0 {
		why = ""
	}
	return machine.Slot{Free: free, Why: why}
}

func (a *agent) reserve(n int) bool {
	room, until, limited := a.breaker.room()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slotLocked(room, until, limited).Free < n {
		return false
	}
	a.reserved += n
	return true
}

func (a *agent) release(n int) {
	a.mu.Lock()
	a.reserved = max(0, a.reserved-n)
	a.mu.Unlock()
	a.freed()
}

// freed is called after a call or a reservation has ended. If neither the agent block nor
// the breaker limits calls, no run waits for a slot, so freed notifies nobody.
func (a *agent) freed() {
	if a.spec.MaxConcurrency > 0 || a.breaker.limits.Load() {
		a.free()
	}
	a.pool.wantRoom()
}

// free notifies the runs that wait for a slot, if a slot is free.
func (a *agent) free() {
	if a.slot().Free > 0 {
		a.pool.free(a.spec.Key)
	}
}

// notSent returns a *Deferred for the reason why a call was not sent.
func notSent(err error) error {
	var down *downError
	switch {
	case errors.As(err, &down):
		return &invoke.Deferred{Until: down.until, Why: down.err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &invoke.Deferred{Why: "complete-by passed before it could be sent"}
	case errors.Is(err, context.Canceled):
		return &invoke.Deferred{Why: "not wanted any more before it could be sent"}
	}
	return &invoke.Deferred{Why: err.Error()}
}

// A downError says that no process can be started before a certain time.
type downError struct {
	until time.Time
	err   error
}

func (e *downError) Error() string { return e.err.Error() }
func (e *downError) Unwrap() error { return e.err }

// startTries is how many times a process that ends before it is ready is started again,
// before check reports that the agent cannot be called here.
const startTries = 5

// check starts a process if none is ready, even after failed starts. If a process ends
// during its start, that says nothing about the agent or the run: a person may have killed
// the process, or the machine had no memory left. So check starts another process at once.
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
			return nil // the agent itself is not missing
		case try == startTries || !diedAtStart(down.err):
			return down.err
		}
	}
}

// diedAtStart reports whether a process ended before it was ready for calls.
func diedAtStart(err error) bool {
	var start *plugin.StartError
	return errors.As(err, &start) && start.Reason == plugin.ReasonExited
}

// readyLocked returns the ready process with the fewest calls, and counts one more call of
// it. It returns nil if none is ready. It starts processes that are not running. atOnce
// means that it ignores the pause after earlier failures.
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

// acquire returns the result of readyLocked. If no process is ready, it waits for one. It
// returns a *downError, ctx's error or errClosed.
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

// idleLocked reports whether no process is running or starting.
func (a *agent) idleLocked() bool {
	return !slices.ContainsFunc(a.instances, func(i *instance) bool { return i.state != stateIdle })
}

// downLocked returns why no process is running or starting, and until when. The error is
// nil if a process is running, starting, or may be started now.
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
