package limits

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

const (
	// leastSlack and mostSlack are the smallest and the largest result of the function `slack`.
	leastSlack = 250 * time.Millisecond
	mostSlack  = 5 * time.Second
	// holdFrom decides how a run waits for a call. If the wait is at least this long, the run gets
	// the time at which its wait ends. If the wait is shorter, the run stays in the queue of the
	// agent.
	holdFrom = 2 * time.Second
)

// slack returns the longest time from the decision to start a call until the call is sent. The
// commit of the decision is part of this time. The parameter `per` is the period of the rate_limit.
func slack(per time.Duration) time.Duration { return min(max(per/10, leastSlack), mostSlack) }

// calls is the engine's part of one rate_limit: the calls that the engine may start.
type calls struct {
	most  int
	per   time.Duration
	grant quota.CallGrant // the calls that the store has granted in its last answer; zero = none
	used  int             // granted calls that were started
	ends  time.Time       // from this time on, no more of the granted calls are started
	// Last time at which the call that was started last may be sent; zero = no call was started.
	last time.Time
	sent time.Time // time of the question to which `grant` is the answer
	next time.Time // earliest time of the next question to the store
	full bool      // the store said that no call is free before the time in the field `next`
	// expected is the number of runs that will soon wait for a call (see Prepare).
	expected int
}

// free returns how many calls may start now.
func (c *calls) free(now time.Time) int {
	if !now.Before(c.ends) {
		return 0
	}
	return max(0, c.grant.Calls-c.used)
}

// until returns the time at which the next call may be free, if the store has named that time and
// it is at least holdFrom away. In all other cases until returns zero, and the run stays in the
// queue of the agent.
func (c *calls) until(now time.Time) time.Time {
	if !c.full || c.next.Sub(now) < holdFrom {
		return time.Time{}
	}
	return c.next
}

// start uses one of the calls that the store has granted. The result is the last time at which the
// call may be sent.
func (c *calls) start(now time.Time) (startBy time.Time, ok bool) {
	if c.free(now) == 0 {
		return time.Time{}, false
	}
	c.used++
	c.last = now.Add(slack(c.per))
	return c.last, true
}

// askCalls asks the store for calls if runs wait for them. It also reports how many of the granted
// calls were started, when the engine will start no more of them. If all of them were started, the
// report waits until runs wait for calls again. The result is the time until the next question. The
// error is store.ErrFenced, or the error of ctx.
func (l *Limits) askCalls(ctx context.Context, a *agent, c *calls) (time.Duration, error) {
	end, err := l.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	waiting := l.waiting(a, func(spec *invoke.AgentSpec) bool {
		return spec.RateLimit.Calls == c.most && spec.RateLimit.Per == c.per
	})
	l.mu.Lock()
	ask, wait := c.ask(time.Now(), max(waiting, c.expected))
	c.expected = 0
	ask.Limit = a.name
	l.mu.Unlock()
	if wait > 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	sent := time.Now()
	grant, err := l.store.TakeCalls(ctx, l.cfg.Engine, ask)
	now := time.Now()
	l.mu.Lock()
	if err != nil {
		c.next, c.full = now.Add(renewEvery), false
		l.mu.Unlock()
		if errors.Is(err, store.ErrFenced) {
			return 0, err
		}
		l.cfg.Outage.Failed(doing, err, "agent", a.name)
		return renewEvery, nil
	}
	c.grant, c.used, c.sent, c.last = grant, 0, sent, time.Time{}
	c.ends = sent.Add(ask.Valid - slack(c.per))
	c.next, c.full = now, false
	if grant.Calls == 0 && ask.Want > 0 {
		c.next, c.full = now.Add(grant.Wait), true
	}
	free, later := c.free(now) > 0, !c.until(now).IsZero()
	l.mu.Unlock()
	l.cfg.Outage.Worked(doing, sent)
	switch {
	case free:
		l.notify(a, l.cfg.Free)
	case later:
		l.notify(a, l.cfg.Later)
	}
	return time.Millisecond, nil
}

// ask returns the next question about calls, without the name of the limit. If no question is due,
// the result `wait` is above 0: the time until a question may be due.
func (c *calls) ask(now time.Time, waiting int) (ask quota.CallAsk, wait time.Duration) {
	over := c.grant.Calls > 0 && (c.used >= c.grant.Calls || !now.Before(c.ends))
	if c.grant.Calls > 0 && !over {
		return ask, c.ends.Sub(now)
	}
	unused := over && c.used < c.grant.Calls // the store can give these calls to other engines
	if waiting == 0 && !unused {
		return ask, pause
	}
	if now.Before(c.next) && !unused {
		return ask, c.next.Sub(now)
	}
	ask = quota.CallAsk{Most: c.most, Per: c.per, Valid: 2 * slack(c.per)}
	if waiting > 0 && !now.Before(c.next) {
		// Ask for at most a quarter of the limit, so that other engines get their part, too.
		ask.Want = min(waiting, max(1, c.most/4))
	}
	if over {
		ask.Usage = quota.Usage{Until: c.grant.Until, Calls: c.grant.Calls, Used: c.used}
		if c.used > 0 {
			ask.Usage.Spare = max(0, c.sent.Add(ask.Valid).Sub(c.last))
		}
		c.grant, c.used = quota.CallGrant{}, 0
	}
	return ask, 0
}
