package sources

import (
	"testing"
	"testing/synctest"
	"time"
)

// T18, S76: while ticks find nothing to start, the goroutines that look for it are quiet. A tick that
// finds something wakes them, at most once a second. An answer counts only for a while: if the store
// does not answer any more, they look again.
func TestIdleHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		q := NewIdleHint(30 * time.Second)
		q.Wakes(func() { woken++ })
		want := func(is bool, wakes int) {
			t.Helper()
			if q.NoWork() != is || woken != wakes {
				t.Errorf("quiet: %t, woken %d times; want %t, %d", q.NoWork(), woken, is, wakes)
			}
		}
		want(false, 0) // nothing is known yet
		q.Looked(false)
		want(true, 0)
		time.Sleep(31 * time.Second)
		want(false, 0)
		q.Looked(false)
		q.Looked(true)
		want(false, 1)
		q.Looked(true)
		want(false, 1)
		time.Sleep(time.Second)
		q.Looked(true)
		want(false, 2)
		q.Looked(false)
		want(true, 2)
	})
}
