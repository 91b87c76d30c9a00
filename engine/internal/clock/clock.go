package clock

import (
	"sync"
	"time"
)

// A Clock returns store time: the time on the store's clock at the last tick, plus the time that
// has passed since this tick by the monotonic clock of this process. So engines agree on the time
// even if their own clocks differ by an hour. A Clock also knows when the lease ends.
type Clock struct {
	mu     sync.Mutex // protects the fields below
	store  time.Time  // store time at the last tick
	local  time.Time  // time at which the answer to the last tick arrived, with monotonic reading
	latest time.Time  // largest time returned so far: times never go backwards
	lease  time.Time  // end of the lease by this process's clock; zero = there was no lease yet
}

// Ticked records a tick whose answer has just arrived. The parameter `sent` is the time at which
// the tick was sent. The parameter `store` is the store time in the answer. The parameter `lease`
// is the length of the lease.
//
// The store read its clock between the sending and the arrival. Ticked counts store time
// from the arrival, so that nothing expires too early. It counts the lease from the sending,
// so that the engine never believes that the lease lasts longer than it does.
func (c *Clock) Ticked(sent time.Time, store time.Time, lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.local = store, time.Now()
	c.lease = sent.Add(lease)
}

// Now returns store time. It never goes backwards.
func (c *Clock) Now() time.Time { return c.Read().Store }

// A Moment holds the values of one reading of a Clock.
type Moment struct {
	Store  time.Time // store time
	Local  time.Time // time by this process's clock, with monotonic reading
	Leased bool      // the lease still lasts
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

// Until returns how long it is until store time t. The result is negative if t has passed.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// Leased reports whether the lease still lasts, by this process's own clock. Without the
// lease no work may start.
func (c *Clock) Leased() bool { return c.Read().Leased }

// LeaseLeft returns how long the lease still lasts. It returns 0 if the lease has ended.
func (c *Clock) LeaseLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Until(c.lease))
}
