//go:build unix

package agents_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
)

// A call that was not ready in time for its turn in rate_limit, because its process had to start
// first, is not sent, and says so. Afterwards the agent has all its slots.
func TestCallIsNotSentAfterItsTurn(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", func(s *invoke.AgentSpec) { s.MaxConcurrency = 1 })
	late := call(spec, "echo", `{"value":1}`, func(c *invoke.Call) { c.StartBy = time.Now().Add(-time.Second) })
	_, err := w.Invoke(t.Context(), late)
	if d := mustDefer(t, err); d.Why != invoke.WhyTooSlow {
		t.Errorf("deferred: %s", d.Why)
	}
	w.mustInvoke(call(spec, "echo", `{"value":1}`, func(c *invoke.Call) { c.StartBy = time.Now().Add(patience) }))
	if slot := w.Slot(spec); slot.Free != 1 {
		t.Errorf("slot=%+v, want 1 free", slot)
	}
}
