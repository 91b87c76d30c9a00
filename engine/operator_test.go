package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/sdk"
)

// S45 (T7): whoever says a verb on a machine whose clock is an hour off is not
// refused for a deadline that has not passed; and what is refused for other
// reasons is refused at once, whatever the clock.
func TestVerbFromAMachineWithAWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, `
workflow "two" {
  deadline     = "30m"
  compensation { mode = "manual" }
  step "bad" {
    action = agent.shop.charge
    input { name = "bad" }
  }
}`)
				w.mem = memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(skew) }})
				w.store = w.mem
				w.shop.on("bad", func(_ context.Context, n int) error {
					if n == 1 {
						return &sdk.Failure{Code: "card_declined", Permanent: true}
					}
					return nil
				})
				n := w.start()
				run := w.submit(n, "two", nil)
				w.wait(n, run, status.RunParked)
				op := w.operator()
				var refused *operator.RefusedError
				if err := op.Try(t.Context(), run, machine.RetryRequested{Step: "none", By: "ann"}); !errors.As(err, &refused) {
					t.Errorf("Try = %v, want a refusal: there is no such step", err)
				}
				id, err := op.Ask(t.Context(), run, machine.RetryRequested{Step: "bad", By: "ann"}, "ann")
				if err != nil {
					t.Fatalf("Ask = %v", err)
				}
				if err := op.Answer(t.Context(), run, id); err != nil {
					t.Errorf("Answer = %v", err)
				}
				w.wait(n, run, status.RunSucceeded)
				n.drain(t)
			})
		})
	}
}
