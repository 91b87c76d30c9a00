package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// T18, S76: while ticks find nothing to start, the goroutines that look for it are quiet. A tick that
// finds something wakes them, at most once a second. An answer counts only for a while: if the store
// does not answer any more, they look again.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		q := &quiet{most: 30 * time.Second}
		q.wakes(func() { woken++ })
		want := func(is bool, wakes int) {
			t.Helper()
			if q.is() != is || woken != wakes {
				t.Errorf("quiet: %t, woken %d times; want %t, %d", q.is(), woken, is, wakes)
			}
		}
		want(false, 0) // nothing is known yet
		q.looked(false)
		want(true, 0)
		time.Sleep(31 * time.Second)
		want(false, 0)
		q.looked(false)
		q.looked(true)
		want(false, 1)
		q.looked(true)
		want(false, 1)
		time.Sleep(time.Second)
		q.looked(true)
		want(false, 2)
		q.looked(false)
		want(true, 2)
	})
}
