package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

// A slowJoin is a store whose Join takes as long as its context allows.
type slowJoin struct{ store.Full }

// Join waits for the end of ctx.
func (s slowJoin) Join(ctx context.Context, _ string, _ time.Duration, _ int) (store.EngineID, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// A node that is asked to stop while it joins the store stops without an error: it owns nothing.
func TestStopWhileJoining(t *testing.T) {
	w := newWorld(t, orderFlow)
	n, err := engine.NewNode(engine.Config{Store: slowJoin{store.Complete(w.mem)}, Invoker: w.inv, Options: w.opts})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
