package engine

import (
	"sync"
	"time"
)

// A clock tells store time: what the store's clock said at the last tick, plus
// what this process's monotonic clock measured since. Engines whose own clocks
// are an hour apart agree. It also knows until when the lease is good.
type clock struct {
	mu     sync.Mutex // protects following fields
	store  time.Time  // store time at the last tick
	local  time.Time  // when the answer to that tick arrived, with monotonic reading
	latest time.Time  // the largest time told: told times never fall
	lease  time.Time  // local: until when the lease is good; zero = never held
}

// ticked records a tick that was sent at sent and whose answer arrived now.
// The store read its clock somewhere between the two. Store time is counted
// from the arrival, so that nothing expires early; the lease from the sending,
// so that it is never believed in for too long.
func (c *clock) ticked(sent time.Time, store time.Time, lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.local = store, time.Now()
	c.lease = sent.Add(lease)
}

// now returns store time. It never falls.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.store.Add(time.Since(c.local)).Round(0)
	if t.Before(c.latest) {
		return c.latest
	}
	c.latest = t
	return t
}

// until returns how long it is to store time t; it may be negative.
func (c *clock) until(t time.Time) time.Duration { return t.Sub(c.now()) }

// leased reports whether the lease is good by this process's own clock. Nothing
// may start without it.
func (c *clock) leased() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.lease)
}
