package call

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// S28: evidence of late answers waits for the store in bounded memory: a number
// of answers and a number of bytes. Answers beyond it are counted.
func TestEvidenceIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ size, want int }{
		"many small answers": {1, maxLateWaiting},
		"few large answers":  {maxLateBytes / 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			ev := &evidence{idle: make(chan struct{})} // as if its goroutine waited for the store
			const all = maxLateWaiting + 50
			for range all {
				ev.add(lateAnswer{size: tc.size})
			}
			if len(ev.waiting) != tc.want || ev.dropped != all-tc.want {
				t.Errorf("%d answers wait and %d were dropped, want %d and %d", len(ev.waiting), ev.dropped, tc.want, all-tc.want)
			}
		})
	}
}

// A reentrant log handler asks for more while it is called: it can only
// return if no lock is held meanwhile.
type reentrant struct {
	slog.Handler
	ask func()
}

func (h reentrant) Enabled(context.Context, slog.Level) bool { return true }
func (h reentrant) Handle(context.Context, slog.Record) error {
	h.ask()
	return nil
}

// Nothing is logged under a lock that those need who do the work.
func TestLoggingHoldsNoLock(t *testing.T) {
	told := make(chan struct{}, 1)
	ev := &evidence{dropped: 1, idle: make(chan struct{})}
	ev.logger = slog.New(reentrant{slog.DiscardHandler, func() { ev.wait(t.Context(), 0); told <- struct{}{} }})
	go ev.work(ev.idle)
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("a logger that asks for more waits for ever")
	}
}
