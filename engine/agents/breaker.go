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

// defaultCooldown is the cooldown if a definition states none.
const defaultCooldown = 30 * time.Second

// windowBuckets is the number of equal parts into which the breaker divides its window. It
// forgets all counts of one part at the same time.
const windowBuckets = 10

// A breaker stops calls to an agent that does not work (S34). A call that it stops was not
// sent and does not count as an attempt.
type breaker struct {
	cb       *gobreaker.TwoStepCircuitBreaker[struct{}]
	cooldown time.Duration
	probes   int
	changed  func(transition) // called without locks held, one call at a time
	spawn    func(fn func()) bool

	limits atomic.Bool // true unless the breaker is closed
	news   atomic.Bool // true if pending is not empty

	mu       sync.Mutex // protects following fields
	until    time.Time  // time of the next probe, while the breaker is open
	failures int        // number of failures that opened the breaker
	pending  []transition
	telling  bool
	timer    *time.Timer // fires at the end of the cooldown, while the breaker is open
	closed   bool
}

type transition struct {
	from, to Circuit
	failures int
	until    time.Time
}

// Verdicts on a call, as errors for gobreaker.
var (
	errBroken   = errors.New("the agent does not work")
	errExcluded = errors.New("says nothing about the agent")
)

// newBreaker returns a closed breaker. spawn runs a function in a goroutine.
func newBreaker(name string, s dsl.Breaker, changed func(transition), spawn func(fn func()) bool) *breaker {
	b := &breaker{cooldown: s.Cooldown, probes: max(1, s.Probes), changed: changed, spawn: spawn}
	if b.cooldown <= 0 {
		b.cooldown = defaultCooldown
	}
	var failures int // number of failures that opened the breaker; protected by gobreaker's own lock
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
			failures = 1 // one failure opens a half-open breaker again
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

// note stores a change of state. The change is reported later by tell, because gobreaker
// holds its lock now.
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
		// gobreaker started its cooldown slightly earlier. So at b.until its cooldown is
		// certainly over.
		b.until = time.Now().Add(b.cooldown)
		b.failures = failures
		t.until, t.failures = b.until, failures
		if !b.closed {
			b.timer = time.AfterFunc(b.cooldown+time.Millisecond, func() { b.state() })
		}
	}
	b.pending = append(b.pending, t)
	b.limits.Store(to != CircuitClosed)
	b.news.Store(true)
}

// tell reports the stored changes, in order.
func (b *breaker) tell() {
	if !b.news.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling {
		return // another goroutine is reporting; it also reports the changes that were added since
	}
	b.telling = true
	for len(b.pending) > 0 {
		t := b.pending[0]
		b.pending = b.pending[1:]
		b.mu.Unlock()
		b.changed(t)
		b.mu.Lock()
	}
	b.pending = nil // free the array, which may have become large
	b.news.Store(false)
	b.telling = false
}

// state returns the present state. If the cooldown of an open breaker has passed, the breaker
// becomes half-open. Another goroutine reports that change, because the caller of state may
// itself be the function that receives such reports.
func (b *breaker) state() Circuit {
	s := circuit(b.cb.State())
	if b.news.Load() {
		b.spawn(b.tell)
	}
	return s
}

// room returns how many calls the breaker admits now. limited is false if it admits all
// calls. until is the time of the next probe if the breaker is open.
func (b *breaker) room() (n int, until time.Time, limited bool) {
	if !b.limits.Load() {
		return 0, time.Time{}, false // a closed breaker can change only when a call ends
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

// status returns the state, the number of failures and, if the breaker is open, the time of
// the next probe.
func (b *breaker) status() (state Circuit, failures int, until time.Time) {
	state = b.state()
	failures = int(b.cb.Counts().ConsecutiveFailures)
	b.mu.Lock()
	defer b.mu.Unlock()
	if state == CircuitOpen {
		return state, b.failures, b.until
	}
	return state, failures, time.Time{}
}

// allow asks the breaker whether a call may be made. If so, it returns a function, which the
// caller must call with the verdict on the call. Otherwise it returns a *Deferred.
func (b *breaker) allow() (done func(verdict error), err error) {
	done, refused := b.cb.Allow()
	b.tell()
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

// verdict returns what a call shows about its agent: nil = the agent works; errBroken = it
// does not work; errExcluded = the call does not show it. For example, an error code that
// only this agent uses does not show it.
func verdict(reply sdk.Reply, err error, completeBy time.Time) error {
	var deferred *invoke.Deferred
	switch {
	case errors.As(err, &deferred):
		return errExcluded
	case err != nil && !time.Now().Before(completeBy):
		return errBroken // no answer in time
	case err != nil:
		return errExcluded // the engine has given up the call
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

// stop stops the timer of the cooldown.
func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}
