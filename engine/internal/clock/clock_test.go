package clock

import (
	"testing"
	"time"
)

// A lease is counted from the moment at which its renewal was sent, so that an
// engine never believes in it for longer than the store does.
func TestLeaseCountsFromItsSending(t *testing.T) {
	var c Clock
	const lease = time.Minute
	for _, tc := range []struct {
		took time.Duration // how long the answer to the tick took
		good bool
	}{{lease / 2, true}, {2 * lease, false}} {
		c.Ticked(time.Now().Add(-tc.took), time.Now(), lease)
		if got := c.Leased(); got != tc.good {
			t.Errorf("the answer took %v: leased = %t, want %t", tc.took, got, tc.good)
		}
	}
}
