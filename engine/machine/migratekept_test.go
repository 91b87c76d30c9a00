package machine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// Each wait takes one early signal. So a definition with fewer waits, or with a wait that only a group in it
// has, must still take all of them.
func TestMigrateRefusesFewerWaits(t *testing.T) {
	in := groupOf(await("x", "go"))
	two := func() *dsl.Workflow { return flow(do("a"), await("v", "go", after("a")), await("w", "go", after("v"))) }
	p := start(t, two(), "do a").signal("go", `1`)
	p.migrate(flow(do("a"), await("v", "go", after("a")))).ok("a").is("succeeded")

	p = start(t, two(), "do a").signal("go", `1`).signal("go", `2`)
	p.refuses(flow(do("a"), await("v", "go", after("a"))), "the run keeps signal go for step w")
	p.refuses(flow(do("a"), do("g", in, after("a"))), "the run keeps signal go for step w")
	p.migrate(flow(do("a"), await("v", "go", after("a"), repeat(dsl.Repeat{Interval: every(time.Minute)}, 2))))

	p = start(t, two(), "do a").signal("go", `1`).signal("go", `2`)
	p.migrate(flow(do("a"), do("g", in, after("a")), await("w", "go", after("g")))).ok("a", "do g").carries("g", "1 go").early(2)

	// A group that has started takes no signal from the run.
	p = start(t, flow(do("a"), do("g", in), await("w", "go", after("a"))), "do a", "do g").signal("go", `1`).early(1)
	p.refuses(flow(do("a"), do("g", in)), "the run keeps signal go for step w")

	// So do the keys of a group that have started.
	keys := func() *spec { return do("g", in, each("k", "l", "m"), parallel(1), after("a")) }
	p = start(t, flow(do("a"), keys(), await("w", "go", after("g"))), "do a").ok("a", "do g[k]")
	p.signal("go", `1`).signal("go", `2`)
	p.migrate(flow(do("a"), keys()))
	p = start(t, flow(do("a"), keys(), await("w", "go", after("g"))), "do a").ok("a", "do g[k]")
	p.signal("go", `1`).signal("go", `2`).signal("go", `3`)
	p.refuses(flow(do("a"), keys()), "the run keeps signal go for step w")
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
