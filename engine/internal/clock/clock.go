// Package clock tells the time of the store, and how long the engine's lease is good.
//
// In come the store's answers to ticks. Two engines of one store read nearly the same
// time, also if their own clocks differ. The returned times never fall.
package clock

import (
	"sync"
	"time"
)

// A Clock tells store time: what the store's clock said at the last tick, plus
// what this process's monotonic clock measured since. Engines whose own clocks
// are an hour apart agree. It also knows until when the lease is good.
type Clock struct {
	mu     sync.Mutex // protects following fields
	store  time.Time  // store time at the last tick
	local  time.Time  // when the answer to that tick arrived, with monotonic reading
	latest time.Time  // the largest time returned so far: times never fall
	lease  time.Time  // local: until when the lease is good; zero = never held
}

// Ticked records a tick that was sent at sent and whose answer arrived now.
// The store read its clock somewhere between the two. Store time is counted
// from the arrival, so that nothing expires early; the lease from the sending,
// so that the engine never believes in it for too long.
func (c *Clock) Ticked(sent time.Time, store time.Time, lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.local = store, time.Now()
	c.lease = sent.Add(lease)
}

// Now returns store time. It never falls.
func (c *Clock) Now() time.Time { return c.Read().Store }

// A Moment holds the values of one reading of a Clock.
type Moment struct {
	Store  time.Time // store time
	Local  time.Time // this process's, with monotonic reading
	Leased bool      // see Clock.Leased
}

// Read returns all values of the clock, with one reading of this process's clock.
func (c *Clock) Read() Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := time.Now()
	m := Moment{Store: c.store.Add(local.Sub(c.local)).Round(0), Local: local, Leased: local.Before(c.lease)}
	if m.Store.Before(c.latest) {
		m.Store = c.latest
	}
	c.latest = m.Store
	return m
}

// Until returns how long it is to store time t; it may be negative.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// Leased reports whether the lease is good by this process's own clock. Nothing
// may start without it.
func (c *Clock) Leased() bool { return c.Read().Leased }

// LeaseLeft returns for how long the lease is still good, at least 0.
func (c *Clock) LeaseLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Until(c.lease))
}
