package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/saga-engine/engine/sdk/plugin"
)

// Limits that have no setting.
const (
	// deadAfter is how many signs of life in a row must be missing before a process is
	// killed. After the first missing one it is drained.
	deadAfter = 4
	// maxOld is how many drained processes of an instance may continue with their calls. If
	// there are more, the oldest is killed.
	maxOld = 2
	// listenFor is for how long an answer is waited for after complete-by, as evidence.
	// maxListening is for how many calls of a process this is done at the same time.
	listenFor    = 30 * time.Second
	maxListening = 100
)

// A life is one process of an instance, from its start to its end. It gets calls until it
// is drained. Then it continues with the calls that it has, each until its complete-by, and
// ends.
type life struct {
	instance *instance
	birth    int64 // number of the process among those of the agent, from 1
	process  *plugin.Process
	born     time.Time

	// Protected by agent.mu.
	calls     int       // number of calls in progress, without those past their complete-by
	listening int       // number of calls past their complete-by whose answer is still waited for
	expired   int       // number of calls in a row that it did not answer in time
	since     time.Time // time at which the first of these calls passed its complete-by
	answered  time.Time // time of the last answer
	missed    int       // number of signs of life in a row that were missing
	draining  string    // why it gets no more calls; "" = it gets calls
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

// watch returns when the process has ended or should end. It asks for signs of life. It
// drains a process that gives none, and kills it if it gives none for long. It ends a
// process that has had no call for long.
func (l *life) watch(ctx context.Context) {
	opts := l.instance.agent.pool.opts
	pings := time.NewTicker(opts.PingInterval)
	defer pings.Stop()
	var bored <-chan time.Time
	if opts.IdleAfter > 0 {
		ticker := time.NewTicker(max(opts.IdleAfter/4, time.Millisecond))
		defer ticker.Stop()
		bored = ticker.C
	}
	for {
		select {
		case <-l.process.Done():
			return
		case <-ctx.Done():
			return
		case <-l.empty:
			return
		case <-bored:
			l.retire()
			continue
		case <-pings.C:
		}
		if !l.ping(ctx) {
			return
		}
	}
}

// ping asks for a sign of life. It reports false if the process is dead.
func (l *life) ping(ctx context.Context) bool {
	a := l.instance.agent
	ping, cancel := context.WithTimeout(ctx, a.pool.opts.PingTimeout)
	err := l.process.Ping(ping)
	cancel()
	if ctx.Err() != nil || l.process.Err() != nil {
		return false
	}
	a.mu.Lock()
	if err == nil {
		l.missed = 0
		a.mu.Unlock()
		return true
	}
	l.missed++
	missed := l.missed
	a.mu.Unlock()
	if missed < deadAfter {
		l.drain("it gives no sign of life")
		return true
	}
	l.instance.logger().Warn("agent gives no sign of life; it is killed", "pid", l.process.Pid(), "error", err)
	l.process.Kill()
	return false
}

// drain gives the process no more calls, and starts another process in its place.
func (l *life) drain(why string) {
	i, a := l.instance, l.instance.agent
	a.mu.Lock()
	if l.draining != "" || i.life != l {
		a.mu.Unlock()
		return
	}
	l.draining = why
	calls := l.calls
	l.emptyLocked()
	pause := i.vacateLocked(l.born, fmt.Errorf("the agent's process is replaced: %s", why))
	i.old = append(i.old, l)
	var excess *life
	if len(i.old) > maxOld {
		excess = i.old[0]
	}
	if pause == 0 {
		i.startLocked() // false: the pool is closed, and everything ends with it
	}
	a.mu.Unlock()
	i.logger().Warn("agent is given no more calls and is replaced", "pid", l.process.Pid(), "why", why, "calls", calls)
	if excess != nil {
		i.logger().Warn("too many drained processes; the oldest is killed", "pid", excess.process.Pid())
		excess.process.Kill()
	}
	if pause > 0 {
		a.pool.run(func() { i.announce(pause) })
	}
}

// retire ends the process if its agent has had no call for long.
func (l *life) retire() {
	i, a := l.instance, l.instance.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.draining != "" || i.life != l || a.reserved > 0 || a.calls > 0 || l.calls > 0 || time.Since(a.lastCall) < a.pool.opts.IdleAfter {
		return
	}
	l.retireLocked()
}

// retireLocked ends a process that has no call.
func (l *life) retireLocked() {
	i := l.instance
	l.draining = "idle"
	i.old = append(i.old, l)
	i.state, i.life, i.why, i.notBefore, i.failures = stateIdle, nil, nil, time.Time{}, 0
	l.emptyLocked()
	i.agent.changedLocked()
}

// emptyLocked notifies watch when a drained process has no call left.
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

// expires records that the process did not answer a call in time. It drains the process if
// that happened many times in a row while another process of the agent answered: then the
// remote service is not the reason (S69). It returns for how long a late answer is waited
// for.
func (l *life) expires(f *activeCall) time.Duration {
	a := l.instance.agent
	a.mu.Lock()
	if !f.counted { // the answer came at the same time and was handled first
		a.mu.Unlock()
		return 0
	}
	now := time.Now()
	f.leaveLocked(now)
	if l.expired++; l.expired == 1 {
		l.since = now
	}
	slow := false
	if limit := a.pool.opts.SlowAfter; limit > 0 && l.expired >= limit {
		for _, other := range a.instances {
			o := other.life
			slow = slow || o != l && o.takesLocked() && o.expired == 0 && o.answered.After(l.since)
		}
	}
	listen := time.Duration(0)
	if l.listening < maxListening {
		l.listening++
		f.listening = true
		listen = listenFor
	}
	a.mu.Unlock()
	if slow {
		l.drain("it does not answer in time while others do")
	}
	return listen
}
