package alerts

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// S76: while there is nothing to push, a watch after the other, the outbox is
// asked little: three statements a minute at most, and the permission asked for once a minute.
func TestIdleHookIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &countedOutbox{outbox: newOutbox()}
		h := NewHook(o, program{path: "none"}, slog.New(slog.DiscardHandler), &tally{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { h.Run(ctx); close(done) }()
		time.Sleep(10 * time.Minute)
		o.reads.Store(0)
		time.Sleep(time.Hour)
		if got := o.reads.Load(); got < 50 || got > 3*60 {
			t.Errorf("%d statements in an hour", got)
		}
		cancel()
		<-done
	})
}

// A countedOutbox counts what it is asked.
type countedOutbox struct {
	*outbox
	reads atomic.Int64
}

func (o *countedOutbox) Undelivered(ctx context.Context, limit int) ([]store.AlertRow, error) {
	o.reads.Add(1)
	return o.outbox.Undelivered(ctx, limit)
}

func (o *countedOutbox) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	o.reads.Add(1)
	return o.outbox.Pass(ctx, name, period)
}
