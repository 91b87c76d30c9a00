package cli

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// A second signal ends the process although the command never looks at it, and a
// third does so on the spot.
func TestSecondSignalEndsTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		signals int
		over    bool
		want    time.Duration // -1 = it goes on
	}{
		"one signal":                 {1, false, -1},
		"two signals":                {2, false, leaveWithin},
		"three signals":              {3, false, 0},
		"the command ended in order": {2, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, over, codes := make(chan os.Signal, 3), make(chan struct{}), make(chan int, 1)
				began := time.Now()
				go leave(signals, over, time.After, func(code int) { codes <- code })
				for range c.signals {
					signals <- os.Interrupt
				}
				synctest.Wait()
				if c.over {
					close(over)
				}
				select {
				case code := <-codes:
					if took := time.Since(began); c.want < 0 || took != c.want || code != exit.Open {
						t.Errorf("the process ended with %d after %s, want %d after %s", code, took, exit.Open, c.want)
					}
				case <-time.After(time.Hour):
					if c.want >= 0 {
						t.Errorf("the process did not end, want after %s", c.want)
					}
					if !c.over {
						close(over)
					}
				}
			})
		})
	}
}
