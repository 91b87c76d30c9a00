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
func (c *clock) now() time.Time { return c.read().store }

// A moment is what a clock told at once.
type moment struct {
	store  time.Time // store time
	local  time.Time // this process's, with monotonic reading
	leased bool      // see clock.leased
}

// read returns everything that the clock knows, for a single look at this process's.
func (c *clock) read() moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := time.Now()
	m := moment{store: c.store.Add(local.Sub(c.local)).Round(0), local: local, leased: local.Before(c.lease)}
	if m.store.Before(c.latest) {
		m.store = c.latest
	}
	c.latest = m.store
	return m
}

// until returns how long it is to store time t; it may be negative.
func (c *clock) until(t time.Time) time.Duration { return t.Sub(c.now()) }

// leased reports whether the lease is good by this process's own clock. Nothing
// may start without it.
func (c *clock) leased() bool { return c.read().leased }
