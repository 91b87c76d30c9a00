// Package limits makes an engine use no more than its part of the limits that all engines of a
// database share: max_concurrency and rate_limit of agents.
//
// In: the calls that an engine wants to start, and the calls that have ended. Out: whether a call
// may start now. A Limits asks the store for parts of the limits in advance, in a goroutine of its
// own. So no decision waits for the store, and a call of an agent without limits costs nothing. A
// Limits knows no run.
//
// Invariants:
//
//   - The engine has no more calls in flight than its row in the store has slots.
//   - The engine's row in the store expires at a certain time. The engine starts no call that may
//     end after this time.
//   - The engine starts no more calls than the store has granted, and starts each of them in the
//     granted time.
package limits

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

// Config holds the parameters of New.
type Config struct {
	Store  store.Store
	Engine store.EngineID
	Clock  *clock.Clock
	Outage *outage.Outage
	// Waiting returns how many runs wait for a call of the agent with this AgentSpec.Key.
	Waiting func(key string) int
	// Free notifies a run that waits for a call of the agent with this AgentSpec.Key.
	Free func(key string)
	// Later is called when no call of the agent with this AgentSpec.Key may start for some time
	// (Slot.Until). It notifies all runs that wait for such a call, so that they need not stay in
	// memory.
	Later func(key string)
	// Halted reports whether the engine stops at once, without waiting for its calls. The services
	// may still work on these calls, so their slots must not be given back. Therefore the Limits
	// asks the store nothing more. The slots become free when the engine's row in the store
	// expires. nil = the engine never stops at once.
	Halted func() bool
}

// A Limits is the Capacity of one membership. It allows a call only if both the Capacity of the
// node and the engine's parts of the limits allow it. New makes a Limits.
type Limits struct {
	invoke.Capacity
	cfg   Config
	store quota.Sharer
	wake  chan struct{} // holds a value if the goroutine of Run has something new to do
	turn  chan struct{} // holds a value while a question to the store is in flight: one at a time

	mu     sync.Mutex // protects the field below, and the agents
	agents map[string]*agent
}

// An agent is what the Limits knows of one limited agent. The limits of an agent belong to its name
// and its plugin. So all definitions, versions and configurations of the agent share them.
type agent struct {
	name  string
	specs map[string]*agentVersion // by AgentSpec.Key
	slots slots
	// The calls that may start, by the text of the rate_limit. Versions of the agent may have
	// different limits.
	calls map[string]*calls
}

// A agentVersion holds what the Limits knows of one version of an agent.
type agentVersion struct {
	spec invoke.AgentSpec
	used int       // slots that calls of this version have reserved
	last time.Time // time at which a call was last made, or at which a run last waited for a call
}

// forget is how long the limits of a version of an agent count after its last call.
const forget = 10 * time.Second

// New returns the Limits of one membership, with no call in flight. The parameter `of` is the
// Capacity of the whole node. New starts no goroutine: the caller must call the method Run, which
// asks the store for parts of the limits.
func New(of invoke.Capacity, cfg Config) *Limits {
	l := &Limits{Capacity: of, cfg: cfg, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), agents: map[string]*agent{}}
	var ok bool
	if l.store, ok = quota.Of(cfg.Store); !ok {
		l.store = quota.NewLocal()
	}
	return l
}

// limited reports whether the agent has a limit that engines share.
func limited(spec *invoke.AgentSpec) bool { return spec.MaxConcurrency > 0 || spec.RateLimit.Calls > 0 }

// Reusable reports whether a run may use the slot of its last call for its next call. The result is
// false in two cases. In the first case, another engine waits for a slot, and this engine uses more
// than its fair part. In the second case, the agent has a rate_limit, so that each call needs its
// own right to start. If the result is false, the run waits like other runs.
func (l *Limits) Reusable(spec invoke.AgentSpec) bool {
	if !limited(&spec) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, _ := l.userLocked(&spec)
	return spec.RateLimit.Calls == 0 && (!a.slots.others || a.slots.used <= a.slots.fair)
}

// userLocked returns the agent and the agentVersion for a version of an agent. It adds them to
// l.agents if they are missing.
func (l *Limits) userLocked(spec *invoke.AgentSpec) (*agent, *agentVersion) {
	name := spec.Name + "/" + spec.Plugin
	a := l.agents[name]
	if a == nil {
		a = &agent{name: name, specs: map[string]*agentVersion{}, slots: slots{linger: firstLinger}, calls: map[string]*calls{}}
		l.agents[name] = a
	}
	u := a.specs[spec.Key]
	if u == nil {
		u = &agentVersion{spec: *spec}
		a.specs[spec.Key] = u
		if rate := spec.RateLimit; rate.Calls > 0 && a.calls[rate.String()] == nil {
			a.calls[rate.String()] = &calls{most: rate.Calls, per: rate.Per}
		}
	}
	return a, u
}

// Slot implements invoke.Capacity.
func (l *Limits) Slot(spec invoke.AgentSpec) machine.Slot {
	s := l.Capacity.Slot(spec)
	if s.Free == 0 || !limited(&spec) {
		return s
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	a, _ := l.userLocked(&spec)
	if spec.MaxConcurrency > 0 {
		if s.Free = min(s.Free, a.slots.free(now)); s.Free == 0 {
			return machine.Slot{Why: "full"}
		}
	}
	if spec.RateLimit.Calls > 0 {
		rate := spec.RateLimit.String()
		if s.Free = min(s.Free, a.calls[rate].free(now)); s.Free == 0 {
			if until := a.calls[rate].until(now); !until.IsZero() {
				return machine.Slot{Why: "rate_limit " + rate + " lets no call start", Until: until}
			}
			return machine.Slot{Why: "waits for its turn in rate_limit " + rate}
		}
	}
	return s
}

// Reserve implements invoke.Capacity.
func (l *Limits) Reserve(spec invoke.AgentSpec, n int) bool {
	if spec.MaxConcurrency == 0 {
		return l.Capacity.Reserve(spec, n)
	}
	now := time.Now()
	l.mu.Lock()
	a, u := l.userLocked(&spec)
	if a.slots.free(now) < n {
		l.mu.Unlock()
		return false
	}
	a.slots.take(n)
	u.used, u.last = u.used+n, now
	l.mu.Unlock()
	if l.Capacity.Reserve(spec, n) {
		return true
	}
	l.release(spec, n)
	return false
}

// Release implements invoke.Capacity.
func (l *Limits) Release(spec invoke.AgentSpec, n int) {
	if spec.MaxConcurrency == 0 {
		l.Capacity.Release(spec, n)
		return
	}
	l.release(spec, n)
	l.Capacity.Release(spec, n)
	for _, key := range l.keys(spec) { // another version of the agent may wait for this slot
		l.cfg.Free(key)
	}
}

func (l *Limits) release(spec invoke.AgentSpec, n int) {
	l.mu.Lock()
	a, u := l.userLocked(&spec)
	u.used = max(0, u.used-n)
	back := a.slots.release(n)
	l.mu.Unlock()
	if back {
		wait.Wake(l.wake)
	}
}

// keys returns the AgentSpec.Key of each version of an agent.
func (l *Limits) keys(spec invoke.AgentSpec) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, _ := l.userLocked(&spec)
	return a.keysLocked()
}

func (a *agent) keysLocked() []string {
	return slices.Collect(maps.Keys(a.specs))
}

// Start takes the right to start one call, for which a slot was reserved. Start does not ask the
// store. The parameter `completeBy` is the complete-by of the call, in store time. If the result
// `ok` is false, the call must not start. The result `startBy` is the last time, by this process's
// clock, at which the call may be sent. If it is zero, the call may be sent until its complete-by.
func (l *Limits) Start(spec invoke.AgentSpec, completeBy time.Time) (startBy time.Time, ok bool) {
	if !limited(&spec) {
		return time.Time{}, true
	}
	left := l.cfg.Clock.Until(completeBy)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	a, u := l.userLocked(&spec)
	u.last = now
	if spec.MaxConcurrency > 0 && !a.slots.covers(now, left) {
		return time.Time{}, false
	}
	if spec.RateLimit.Calls == 0 {
		return time.Time{}, true
	}
	return a.calls[spec.RateLimit.String()].start(now)
}

// Want reports that a run waits for a call of the agent, so that the goroutine of Run asks the
// store.
func (l *Limits) Want(spec invoke.AgentSpec) {
	if !limited(&spec) {
		return
	}
	l.mu.Lock()
	_, u := l.userLocked(&spec)
	u.last = time.Now()
	l.mu.Unlock()
	wait.Wake(l.wake)
}

// Prepare asks the store for parts of the limits of the given agents, if the engine has none yet.
// So the first step of a new run need not wait until the method Run has asked the store. Prepare
// waits at most one second for each agent. If the store does not answer in this time, the method
// Run asks later.
func (l *Limits) Prepare(ctx context.Context, specs map[string]invoke.AgentSpec) {
	for _, spec := range specs {
		if !limited(&spec) {
			continue
		}
		l.mu.Lock()
		a, u := l.userLocked(&spec)
		now := time.Now()
		u.last = now
		bare := spec.MaxConcurrency > 0 && a.slots.inRow == 0 && !a.slots.unmet
		var c *calls
		if spec.RateLimit.Calls > 0 {
			if c = a.calls[spec.RateLimit.String()]; c.free(now) > 0 || c.full && now.Before(c.next) {
				c = nil
			}
		}
		if bare {
			a.slots.expected = 1
		}
		if c != nil {
			c.expected = 1
		}
		l.mu.Unlock()
		if !bare && c == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, prepareFor)
		var err error
		if bare {
			_, err = l.askSlots(ctx, a)
		}
		if c != nil && err == nil {
			_, err = l.askCalls(ctx, a, c)
		}
		cancel()
		if err != nil { // the engine was declared dead, which Run reports, or ctx has ended
			return
		}
	}
}

// prepareFor is how long Prepare waits at most for the answers about one agent.
const prepareFor = time.Second

// begin waits until no other goroutine has a question to the store in flight. The caller must call
// the function `end` after its own question. begin returns an error if ctx ends first. If
// Config.Halted returns true, begin waits until ctx ends.
func (l *Limits) begin(ctx context.Context) (end func(), err error) {
	if l.cfg.Halted != nil && l.cfg.Halted() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pause is the longest time that Run waits between two calls of the method `step`.
const pause = time.Minute

// Run asks the store for parts of the limits, whenever calls need them. If the engine was declared
// dead, Run returns store.ErrFenced. When ctx ends, Run returns nil.
func (l *Limits) Run(ctx context.Context) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		next, err := l.step(ctx)
		switch {
		case errors.Is(err, store.ErrFenced):
			return err
		case err != nil: // ctx has ended
			return nil
		}
		timer.Reset(next)
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// step sends the questions that are due. It returns the time until the next question is due.
func (l *Limits) step(ctx context.Context) (next time.Duration, err error) {
	l.mu.Lock()
	agents := slices.Collect(maps.Values(l.agents))
	l.mu.Unlock()
	next = pause
	for _, a := range agents {
		wait, err := l.askSlots(ctx, a)
		if err != nil {
			return 0, err
		}
		next = min(next, wait)
		for _, c := range l.rates(a) {
			if wait, err = l.askCalls(ctx, a, c); err != nil {
				return 0, err
			}
			next = min(next, wait)
		}
	}
	return max(next, time.Millisecond), nil
}

// GiveBack gives back the slots that no call uses, for all agents. The engine calls GiveBack before
// it leaves the store. Then other engines can use the slots at once.
func (l *Limits) GiveBack(ctx context.Context) {
	end, err := l.begin(ctx)
	if err != nil {
		return // ctx has ended: the store frees the slots later, when the engine's rows have expired
	}
	defer end()
	l.mu.Lock()
	var asks []quota.SlotAsk
	for _, a := range l.agents {
		if a.slots.inRow > 0 {
			a.slots.limit = a.slots.used
			asks = append(asks, quota.SlotAsk{Limit: a.name, Most: max(1, a.slots.most), Reserve: a.slots.used, Want: a.slots.used, Keep: answerValid, Linger: a.slots.granted})
		}
	}
	l.mu.Unlock()
	for _, ask := range asks {
		if _, err := l.store.ShareSlots(ctx, l.cfg.Engine, ask); err != nil {
			l.cfg.Outage.Failed(doing, err, "agent", ask.Limit)
			return
		}
	}
}

// doing names the questions of this package in the log.
const doing = "share the limits of agents"

// rates returns the rate limits of an agent.
func (l *Limits) rates(a *agent) []*calls {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(a.calls))
}

// waiting returns how many runs wait for a call of an agent. It counts only the versions of the
// agent that the given function selects.
func (l *Limits) waiting(a *agent, which func(*invoke.AgentSpec) bool) (n int) {
	l.mu.Lock()
	users := make([]*agentVersion, 0, len(a.specs))
	for _, u := range a.specs {
		if which(&u.spec) {
			users = append(users, u)
		}
	}
	l.mu.Unlock()
	for _, u := range users {
		if w := l.cfg.Waiting(u.spec.Key); w > 0 {
			n += w
			l.mu.Lock()
			u.last = time.Now()
			l.mu.Unlock()
		}
	}
	return n
}

// notify calls a function of Config for each version of the agent.
func (l *Limits) notify(a *agent, fn func(key string)) {
	l.mu.Lock()
	keys := a.keysLocked()
	l.mu.Unlock()
	for _, key := range keys {
		fn(key)
	}
}
