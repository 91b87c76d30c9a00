package machine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// explained are runs in every state, with what is said about them in
// testdata/explain.txt.
var explained = []struct {
	name string
	run  func(t *testing.T) *play
}{
	{"queued", func(t *testing.T) *play {
		return startWith(t, flow(do("a"), runDeadline(second(7200))), map[string]machine.Slot{"shop": {Until: noon.Add(second(20)), Why: "circuit open"}})
	}},
	{"running", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b", idempotent, timeout(second(90)), heartbeat(second(20)))), "do a", "do b")
		p.now = p.now.Add(second(3))
		p.event(machine.TakenOver{By: 2, From: 1}, "do b")
		return p
	}},
	{"backoff", func(t *testing.T) *play {
		p := start(t, flow(do("a", tries(3)), runDeadline(second(100000))), "do a")
		return p.fail("a", "flaky")
	}},
	{"held", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b", after("a")), do("c", after("a"), agent("bank"))), "do a")
		p.slots = map[string]machine.Slot{"shop": {Why: "full"}, "bank": {Until: noon.Add(second(30)), Why: "circuit open"}}
		return p.ok("a")
	}},
	{"many steps", func(t *testing.T) *play {
		return start(t, flow(do("a", each("k", "l", "m", "n", "o", "p", "q"))), "do a[k]", "do a[l]", "do a[m]", "do a[n]", "do a[o]", "do a[p]", "do a[q]")
	}},
	{"cool-down", func(t *testing.T) *play {
		p := start(t, flow(do("a", exhausted(dsl.ExhaustedCoolDown))), "do a")
		return p.fail("a", "flaky")
	}},
	{"lookup has to wait", func(t *testing.T) *play {
		p := start(t, flow(do("a", lookup)), "do a")
		p.now = p.now.Add(second(30))
		return p.event(machine.TimePassed{})
	}},
	{"overdue for an engine", func(t *testing.T) *play {
		p := start(t, flow(do("a", tries(3))), "do a")
		p.fail("a", "flaky")
		p.now = p.now.Add(second(60))
		return p
	}},
	{"not repeated: an unknown outcome", func(t *testing.T) *play {
		p := start(t, flow(do("a", tries(2))), "do a")
		return p.unknown("a", "unavailable", "alert parked")
	}},
	{"not repeated: another code", func(t *testing.T) *play {
		p := start(t, flow(do("a", idempotent)), "do a")
		return p.fail("a", "declined")
	}},
	{"not repeated: not_on", func(t *testing.T) *play {
		p := start(t, flow(do("a", idempotent, notOn("unavailable"))), "do a")
		return p.fail("a", "unavailable")
	}},
	{"undo before another attempt", func(t *testing.T) *play {
		p := start(t, flow(do("a", undoByKey, undoFirst, tries(3))), "do a")
		p.unknown("a", "agent_lost")
		return p.wait(second(1), "undo a")
	}},
	{"paused", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b"), do("c", after("a")), runDeadline(second(300))), "do a", "do b")
		p.event(machine.PauseRequested{By: "ann", Reason: "the bank is being moved"})
		p.now = p.now.Add(second(2))
		return p.ok("a")
	}},
	{"paused while it is undone", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(machine.PauseRequested{})
		return p.permanent("b", "no_carrier")
	}},
	{"parked: unknown", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b", each("k"), after("a")), runDeadline(second(300))), "do a")
		p.ok("a", "do b[k]")
		return p.unknown("b[k]", "agent_lost", "alert parked")
	}},
	{"parked: failed", func(t *testing.T) *play {
		p := start(t, flow(do("a"), manual), "do a")
		return p.fail("a", "declined", "alert parked")
	}},
	{"parked: overdue", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b"), manual, runDeadline(second(20))), "do a", "do b")
		p.fail("a", "declined", "alert parked")
		return p.wait(second(20), "alert overdue")
	}},
	{"parked: after the deadline", func(t *testing.T) *play {
		p := start(t, flow(do("a", idempotent), manual, runDeadline(second(20))), "do a")
		p.fail("a", "flaky")
		p.wait(second(1), "do a")
		return p.wait(second(19), "alert parked")
	}},
	{"parked: after the pivot", func(t *testing.T) *play {
		p := start(t, flow(do("p", pivot), do("a", after("p"))), "do p")
		p.ok("p", "do a")
		return p.fail("a", "declined", "alert parked")
	}},
	{"parked: the pivot is unknown", func(t *testing.T) *play {
		p := start(t, flow(do("p", pivot)), "do p")
		return p.unknown("p", "agent_lost", "alert parked")
	}},
	{"a turn waits for the pivot", func(t *testing.T) *play {
		p := start(t, flow(do("p", pivot)), "do p")
		return p.event(machine.CancelRequested{By: "ann", Reason: "wrong order"})
	}},
	{"compensating", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b"), do("c"), do("d", after("a"))), "do a", "do b", "do c")
		p.ok("a", "do d")
		p.ok("d")
		p.fail("c", "declined", "undo d")
		return p.fail("d", "flaky")
	}},
	{"undo waits until nobody is at work", func(t *testing.T) *play {
		p := start(t, flow(do("a", undoByKey)), "do a")
		p.now = p.now.Add(second(30))
		return p.event(machine.TimePassed{})
	}},
	{"output is learned", func(t *testing.T) *play {
		p := start(t, flow(do("a", idempotent, tries(1))), "do a")
		return p.unknown("a", "agent_lost", "do a")
	}},
	{"compensation failed", func(t *testing.T) *play {
		p := start(t, flow(do("z"), do("a", after("z")), do("b", after("a"), undoOnce), do("c", after("b"))), "do z")
		p.ok("z", "do a")
		p.ok("a", "do b")
		p.ok("b", "do c")
		p.fail("c", "declined", "undo b")
		return p.unknown("b", "agent_lost", "alert compensation_failed")
	}},
	{"compensation failed: permanent", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.fail("b", "declined", "undo a")
		return p.permanent("a", "gone", "alert compensation_failed")
	}},
	{"compensation failed: unknown step", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b")), "do a", "do b")
		p.fail("b", "declined")
		return p.unknown("a", "agent_lost", "alert compensation_failed")
	}},
	{"waits for child runs", func(t *testing.T) *play {
		p := start(t, flow(do("c", child), do("d", child, each("berlin"), deadline(second(40)))), "do c", "do d[berlin]")
		p.now = p.now.Add(second(3))
		return p
	}},
	{"stops a child run", func(t *testing.T) *play {
		p := start(t, flow(do("c", child)), "do c")
		return p.event(machine.CancelRequested{By: "ann"}, "stop c")
	}},
	{"undoes a child run", func(t *testing.T) *play {
		p := start(t, flow(do("c", child), do("a", after("c"))), "do c")
		p.ok("c", "do a")
		return p.permanent("a", "declined", "undo c")
	}},
	{"succeeded", func(t *testing.T) *play { return start(t, flow(do("a")), "do a").ok("a") }},
	{"failed", func(t *testing.T) *play { return start(t, flow(do("a")), "do a").permanent("a", "declined") }},
	{"compensated", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("n", noUndo), do("b", after("a", "n"))), "do a", "do n")
		p.ok("a")
		p.ok("n", "do b")
		p.fail("b", "declined", "undo a")
		return p.ok("a")
	}},
	{"cancelled", func(t *testing.T) *play {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(machine.CancelRequested{NoCompensate: true, By: "ann", Reason: "by hand"})
		return p.fail("b", "aborted")
	}},
	{"cancelled without a reason", func(t *testing.T) *play {
		p := start(t, flow(do("a")), "do a")
		p.event(machine.CancelRequested{By: "ann"})
		return p.fail("a", "aborted")
	}},
}

// S59: why a run does not move, what moves it next and when, and what a person
// can do, in every state.
func TestExplain(t *testing.T) {
	path := filepath.Join("testdata", "explain.txt")
	var got strings.Builder
	for _, c := range explained {
		p := c.run(t)
		before := snapshot(p.s)
		x := story.Explain(p.s, p.wf, p.now)
		if string(before) != string(snapshot(p.s)) {
			t.Errorf("%s: explaining changed the state", c.name)
		}
		due, _ := p.s.NextDue()
		if x.NeedsHuman != p.s.Run().State.NeedsHuman() || !p.s.Status().Final() && !x.Next.Equal(due) {
			t.Errorf("%s: got %+v", c.name, x)
		}
		fmt.Fprintf(&got, "== %s\n%s\n", c.name, strings.Join(x.Sentences, "\n"))
		if !x.Next.IsZero() {
			fmt.Fprintf(&got, "next %s\n", x.Next.Format("2006-01-02 15:04:05.000"))
		}
		for _, r := range x.Remedies {
			fmt.Fprintf(&got, "$ %s\n", r)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestExplainBeforeTheFirstRecord(t *testing.T) {
	if x := story.Explain(machine.NewState(), flow(), noon); len(x.Sentences) != 1 {
		t.Errorf("got %+v", x)
	}
}
