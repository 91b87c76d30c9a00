package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

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
	var k *LogKeeper
	k = NewLogKeeper(nil, slog.New(reentrant{slog.DiscardHandler, func() { k.Keep(store.LogLine{}); told <- struct{}{} }}))
	k.dropped = 1
	go func() { _ = k.flush(t.Context(), logBatch) }()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("a logger that asks for more waits for ever")
	}
}
