package agents

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// defaultCooldown is how long a circuit stays open if its circuit_breaker block names no cooldown.
const defaultCooldown = 30 * time.Second

// windowBuckets is the number of equal intervals into which the breaker divides its window. The
// breaker forgets the oldest interval as a whole, with all calls that it counted in this interval.
const windowBuckets = 10

// A breaker is the circuit of an agent. While the agent does not work, the breaker stops calls
// to it (S34). A stopped call was not sent and does not count as an attempt.
type breaker struct {
	cb       *gobreaker.TwoStepCircuitBreaker[struct{}]
	cooldown time.Duration
	probes   int
	changed  func(transition) // receives each change of state, in order and without locks held
	// spawn runs fn in a goroutine. It returns false if the pool is closed.
	spawn func(fn func()) bool

	limits atomic.Bool // true = the circuit is open or half-open, so it limits calls
	news   atomic.Bool // true = the list `pending` has changes that were not reported yet

	mu        sync.Mutex   // protects the fields below
	until     time.Time    // time of the next probe; zero unless the circuit is open
	pending   []transition // changes of state that were not reported yet, in order
	reporting bool         // true = a goroutine is reporting the changes in the list `pending`
	timer     *time.Timer  // fires at the end of the cooldown; nil unless the circuit is open
	closed    bool         // true = the method `stop` was called
}

type transition struct {
	from, to Circuit
	failures int
	until    time.Time
}

// The verdict on a call says what the call shows about its agent. A verdict is one of these errors
// or nil; nil = the agent works. The library gobreaker counts the verdicts.
var (
	errBroken   = errors.New("the agent does not work")
	errExcluded = errors.New("says nothing about the agent")
)

// newBreaker returns a breaker whose circuit is closed. The breaker passes each change of state to
// the function `changed`. The function `spawn` runs its argument in a goroutine.
func newBreaker(name string, s dsl.Breaker, changed func(transition), spawn func(fn func()) bool) *breaker {
	b := &breaker{cooldown: s.Cooldown, probes: max(1, s.Probes), changed: changed, spawn: spawn}
	if b.cooldown <= 0 {
		b.cooldown = defaultCooldown
	}
	var failures int // number of failures that opened the circuit; protected by gobreaker's own lock
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         name,
		MaxRequests:  uint32(b.probes),
		Interval:     s.Window,
		BucketPeriod: s.Window / windowBuckets,
		Timeout:      b.cooldown,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			failures = int(c.ConsecutiveFailures)
			if s.TripAfter > 0 && failures >= s.TripAfter {
				return true
			}
			done := c.TotalSuccesses + c.TotalFailures
			failures = int(c.TotalFailures)
			return s.FailureRatio > 0 && int(done) >= s.MinCalls &&
				float64(c.TotalFailures) >= s.FailureRatio*float64(done)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errExcluded) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.note(circuit(from), circuit(to), failures)
			failures = 1 // one failure opens a half-open circuit again
		},
	})
	return b
}

func circuit(s gobreaker.State) Circuit {
	switch s {
	case gobreaker.StateOpen:
		return CircuitOpen
	case gobreaker.StateHalfOpen:
		return CircuitHalfOpen
	}
	return CircuitClosed
}

// note adds a change of state to the list `pending`. The library gobreaker holds its own lock while
// it calls the method `note`. So the method `report` reports the change later, without this lock.
func (b *breaker) note(from, to Circuit, failures int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := transition{from: from, to: to}
	b.until = time.Time{}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if to == CircuitOpen {
		// gobreaker started its cooldown slightly before this line. So at b.until its cooldown is
		// certainly over.
		b.until = time.Now().Add(b.cooldown)
		t.until, t.failures = b.until, failures
		if !b.closed {
			b.timer = time.AfterFunc(b.cooldown+time.Millisecond, func() { b.state() })
		}
	}
	b.pending = append(b.pending, t)
	b.limits.Store(to != CircuitClosed)
	b.news.Store(true)
}

// report reports the changes in the list `pending`, in order.
func (b *breaker) report() {
	if !b.news.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reporting {
		return // the goroutine that is reporting also reports the changes that were added since
	}
	b.reporting = true
	for len(b.pending) > 0 {
		t := b.pending[0]
		b.pending = b.pending[1:]
		b.mu.Unlock()
		b.changed(t)
		b.mu.Lock()
	}
	b.pending = nil // free the array, which may have become large
	b.news.Store(false)
	b.reporting = false
}

// state returns the present state. If the circuit is open and its cooldown has passed, it
// becomes half-open. Another goroutine reports this change to the function b.changed, because
// b.changed may call state itself.
func (b *breaker) state() Circuit {
	s := circuit(b.cb.State())
	if b.news.Load() {
		b.spawn(b.report)
	}
	return s
}

// allowed returns how many calls the breaker lets through now, as the result `n`. If the result
// `limited` is false, it lets all calls through, and `n` has no meaning. If the circuit is open,
// the result `until` is the time of the next probe; otherwise `until` is zero.
func (b *breaker) allowed() (n int, until time.Time, limited bool) {
	if !b.limits.Load() {
		// The circuit is closed. It can open only when a call ends.
		return 0, time.Time{}, false
	}
	switch b.state() {
	case CircuitOpen:
		b.mu.Lock()
		defer b.mu.Unlock()
		return 0, b.until, true
	case CircuitHalfOpen:
		c := b.cb.Counts()
		return max(0, b.probes-int(c.Requests-c.TotalExclusions)), time.Time{}, true
	}
	return 0, time.Time{}, false
}

// allow asks the breaker whether a call may be made. If the call may be made, the result `done` is
// a function to which the caller must pass the verdict on the call. If not, err is a *Deferred.
func (b *breaker) allow() (done func(verdict error), err error) {
	done, refused := b.cb.Allow()
	b.report()
	switch {
	case refused == nil:
		return done, nil
	case errors.Is(refused, gobreaker.ErrTooManyRequests):
		return nil, &invoke.Deferred{Why: "circuit half-open, probe under way"}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return nil, &invoke.Deferred{Until: b.until, Why: "circuit open"}
}

// verdict returns an error that says what a call shows about its agent: nil = the agent works;
// errBroken = the agent does not work; errExcluded = the call does not show whether the agent
// works. For example, verdict returns errExcluded for a definite failure, except with the codes
// unavailable and rate_limited.
func verdict(reply sdk.Reply, err error, completeBy time.Time) error {
	var deferred *invoke.Deferred
	switch {
	case errors.As(err, &deferred):
		return errExcluded
	case err != nil && !time.Now().Before(completeBy):
		return errBroken // no answer in time
	case err != nil:
		return errExcluded // the engine ended the call before its complete-by
	}
	switch reply.Outcome {
	case sdk.OutcomeResult, sdk.OutcomeNotDone:
		return nil
	case sdk.OutcomeFailed:
		if reply.Code == sdk.CodeUnavailable || reply.Code == sdk.CodeRateLimited {
			return errBroken
		}
		return errExcluded
	}
	if reply.Code == sdk.CodeAborted {
		return errExcluded
	}
	return errBroken
}

// stop stops the timer of the cooldown. From then on, the breaker starts no timer.
func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}
