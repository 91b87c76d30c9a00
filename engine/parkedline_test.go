package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A watched Capacity has one slot, and counts how often an engine asks for a free slot. After a
// thousand questions it has none any more, so that an engine that asks for ever comes to rest.
type watched struct {
	seats
	questions int
}

func (s *watched) Slot(spec invoke.AgentSpec) machine.Slot {
	s.mu.Lock()
	s.questions++
	over := s.questions > 1000
	s.mu.Unlock()
	if over {
		return machine.Slot{Why: "too many questions"}
	}
	return s.seats.Slot(spec)
}

// asked returns how often an engine has asked for a free slot.
func (s *watched) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questions
}

// A parked run does not wait in line for a slot, because it starts nothing. Otherwise the free slot
// would wake it, and it would wait in line again at once, for ever.
func TestParkedRunIsNotInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "two" {
  compensation { mode = "manual" }
  step "a" {
    action = agent.shop.reserve
    input { name = "a" }
  }
  step "b" {
    action = agent.shop.reserve
    input { name = "b" }
  }
}`)
		s := &watched{seats: seats{limit: 1}}
		w.cfg = func(c *engine.Config) { c.Capacity = s }
		w.shop.on("a", func(_ context.Context, n int) error {
			time.Sleep(time.Second)
			if n == 1 {
				return &sdk.Failure{Code: "out_of_stock", Permanent: true}
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "two", nil)
		w.wait(n, run, status.RunParked)
		time.Sleep(time.Minute)
		if n := s.asked(); n > 100 {
			t.Errorf("the engine has asked %d times whether a slot is free, although the run is parked", n)
		}
		if err := n.Deliver(t.Context(), run, machine.RetryRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}
