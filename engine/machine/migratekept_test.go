package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// refuses checks that the run cannot be moved to the workflow, for the given reason.
func (p *play) refuses(next *dsl.Workflow, why string) {
	p.t.Helper()
	next.Digest = "next"
	rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: machine.Migrated{Workflow: 9, By: "ann"}, Next: next})
	if refused, ok := rec.Refused(); !ok || !strings.Contains(refused.Reason, why) {
		p.t.Errorf("the move is refused: %t because of %q, want %q", ok, refused.Reason, why)
	}
}

// A run keeps an early signal for a later step. The step of the new definition must take it, too.
func TestMigrateRefusesToLoseASignal(t *testing.T) {
	p := start(t, flow(do("a"), await("w", "go", after("a"))), "do a").signal("go", `"x"`)
	p.refuses(flow(do("a"), await("w", "stop", after("a"))), "the run keeps signal go for step w")
	picky := await("w", "go", after("a"))
	picky.Wait.Payload = func([]byte) (dsl.Value, error) { return dsl.Value{}, errors.New("bad") }
	p.refuses(flow(do("a"), picky), "the run keeps signal go for step w")
	p.migrate(flow(do("a"), await("z", "stop go", after("a")))).ok("a").is("succeeded")

	// The step of the old definition has taken the signal, so the new one need not wait for it.
	p = start(t, flow(do("a"), await("w", "go"), do("b", after("a"))), "do a").signal("go", `"x"`)
	p.migrate(flow(do("a"), await("w", "go"), do("b", after("a")), do("c", after("b"))))
}

// A recorded result keeps its sensitive parts: a definition whose action does not mark them is refused.
func TestMigrateRefusesToExposeAResult(t *testing.T) {
	marked := func(data []byte) (dsl.Value, error) { return dsl.NewValue(data, []string{"/card"}, nil), nil }
	secret := func(s *spec) { s.Do.Output = marked }
	p := start(t, flow(do("a", secret), do("b", after("a"))), "do a")
	card, _ := marked([]byte(`{"card":"4711"}`))
	p.event(machine.AttemptOK{Attempt: p.call("a", 0).Attempt, Output: card}, "do b")
	p.refuses(flow(do("a"), do("b", after("a"))), "the attribute card of the result of step a is sensitive in the run")
}
