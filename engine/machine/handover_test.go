package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// groupOf makes a step start the run of a group with these steps.
func groupOf(inside ...*spec) option {
	return func(s *spec) {
		group(s)
		flow := *s.Child.Workflow
		flow.Steps = nil
		for _, x := range inside {
			flow.Steps = append(flow.Steps, x.Step)
		}
		s.Child.Workflow = &flow
	}
}

// carries checks the numbers and names of the signals that the open call of a node carries, such as
// "1 go".
func (p *play) carries(node string, want ...string) *play {
	p.t.Helper()
	var got []string
	for _, s := range p.call(node, 0).Signals {
		got = append(got, fmt.Sprint(s.Number, " ", s.Name))
	}
	if !slices.Equal(got, want) {
		p.t.Fatalf("the call of %s carries the signals %q, want %q\n%s", node, got, want, p.dump())
	}
	return p
}

// early checks the numbers of the early signals that the run has for itself.
func (p *play) early(want ...int32) *play {
	p.t.Helper()
	var got []int32
	for _, s := range p.s.EarlySignals() {
		got = append(got, s.Number)
	}
	if !slices.Equal(got, want) {
		p.t.Fatalf("the run has the early signals %v, want %v", got, want)
	}
	return p
}

// ended ends the child run of a node without success. Its parent sees that the child exists.
func (p *play) ended(node string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptFailed{Attempt: p.call(node, 0).Attempt, Code: "declined", Permanent: true, Data: js(`{"run":"c","status":"failed"}`)}, want...)
}

// A signal for a group that has not started is kept, and goes with the call that starts the group. A
// running group and an ended one get no signals through the run around them.
func TestSignalWaitsForAGroup(t *testing.T) {
	p := start(t, flow(do("a"), do("g", groupOf(await("w", "go"), do("h", groupOf(await("deep", "deep")))), after("a"))), "do a")
	p.signal("go", `1`).signal("deep", `2`).early(1, 2)
	p.signal("go", `"bad"`).refused("the payload does not fit: not what the schema says")
	p.signal("stop", `1`).refused("no step waits for signal stop")
	p.ok("a", "do g").carries("g", "1 go", "2 deep").early()
	p.signal("go", `3`).refused("is in group g, which is a run of its own")
	for range 2 { // also through a snapshot: each event of a play is decided from one, too
		p.event(machine.TakenOver{By: 2, From: 1}, "do g").carries("g", "1 go", "2 deep")
	}
	p.ok("g").is("succeeded")
	if n := p.s.HandedSignals(); n != 0 {
		t.Errorf("the run still has %d signals of the group, which has ended", n)
	}
}

// A step of the run itself comes before the groups, as long as it can take the signal.
func TestOwnStepComesBeforeGroups(t *testing.T) {
	own := await("own", "go", after("b"))
	own.Wait.Payload = func(data []byte) (dsl.Value, error) {
		if string(data) != `1` {
			return dsl.Value{}, errBroken
		}
		return dsl.NewValue(data, nil, nil), nil
	}
	p := start(t, flow(do("a"), do("b"), do("g", groupOf(await("w", "go")), after("a")), own), "do a", "do b")
	p.signal("go", `1`).signal("go", `2`)
	p.ok("a", "do g").carries("g", "2 go").early(1)
	p.ok("g").ok("b").is("succeeded")
	if got := p.output("own"); got != `1` {
		t.Errorf("the output of the run's own step is %s, want 1", got)
	}
}

// A step of the run itself keeps only as many signals from the groups as it can take.
func TestOwnStepsReserveWhatTheyCanTake(t *testing.T) {
	in := groupOf(await("w", "go"))
	world := func(own ...any) *play {
		p := start(t, flow(append([]any{do("a"), do("b"), do("g", in, after("a"))}, own...)...), "do a", "do b")
		for range 4 {
			p.signal("go", `1`)
		}
		return p.ok("a", "do g")
	}
	world(await("own", "go", after("b"))).carries("g", "2 go", "3 go", "4 go").early(1)
	world(await("own", "go", after("b")), await("next", "go", after("own"))).carries("g", "3 go", "4 go").early(1, 2)
	world(await("own", "go", after("b"), repeat(dsl.Repeat{Interval: every(time.Minute)}, 3))).carries("g").early(1, 2, 3, 4)
	world(await("own", "go", after("b"), each("k", "l"))).carries("g").early(1, 2, 3, 4) // b may change how many there are

	// The instances are known, and one of them has taken its signal.
	p := start(t, flow(do("a"), do("g", in, after("a")), await("own", "go", each("k", "l", "m"), parallel(1)), timer("x", time.Hour)), "do a")
	p.signal("go", `1`).state("own[k] succeeded", "own[l] waiting")
	p.event(machine.PauseRequested{By: "ann"})
	p.event(machine.ResumeRequested{By: "ann"})
	p.signal("go", `2`).signal("go", `3`).signal("go", `4`).ok("a", "do g").carries("g", "4 go")
}

// A step that depends on a group, directly or not, keeps no signal from the group: the group may need it to
// end. So each step gets one signal, in the order of the steps.
func TestStepBehindAGroupGetsNoSignalBeforeIt(t *testing.T) {
	in := groupOf(await("w", "go"))
	p := start(t, flow(do("a"), do("g", in, after("a")), do("b", after("g")), await("own", "go", after("b"))), "do a")
	p.signal("go", `1`).signal("go", `2`)
	p.ok("a", "do g").carries("g", "1 go").early(2)
	p.ok("g", "do b").ok("b").is("succeeded")
	if got := p.output("own"); got != `2` {
		t.Errorf("the output of the step behind the group is %s, want 2", got)
	}
	signals := []model.Signal{{Name: "go", Payload: js(`1`)}, {Name: "go", Payload: js(`2`)}}
	p = startChild(t, flow(do("h", in), await("own", "go", after("h"))), machine.Started{Signals: signals}, "do h")
	p.carries("h", "1 go").early(2).ok("h").is("succeeded")
}

// A run needs a signal most if a step waits for it. It needs none for a step for which it keeps a signal.
func TestNeedOfARun(t *testing.T) {
	in := groupOf(await("w", "go"))
	needs := func(p *play, data string, want status.Need) {
		t.Helper()
		if got := new(machine.Scratch).Need(p.wf, p.s, machine.SignalReceived{Name: "go", Payload: js(data)}); got != want {
			t.Errorf("the need is %d, want %d\n%s", got, want, p.dump())
		}
	}
	p := start(t, flow(do("a"), await("own", "go", after("a"))), "do a")
	needs(p, `1`, status.NeedSoon)
	needs(p, `"bad"`, status.NeedNone)
	p.signal("go", `1`)
	needs(p, `1`, status.NeedNone)

	p = start(t, flow(await("own", "go"), await("next", "go", after("own"))))
	needs(p, `1`, status.NeedNow)
	needs(p, `"bad"`, status.NeedNone)

	p = start(t, flow(do("a"), do("g", in, after("a")), await("own", "go", after("g"))), "do a")
	needs(p, `1`, status.NeedLater)
	p.signal("go", `1`)
	needs(p, `1`, status.NeedLater)
	p.signal("go", `2`)
	needs(p, `1`, status.NeedNone)
	p.ok("a", "do g").carries("g", "1 go")
	needs(p, `1`, status.NeedNone)
	p.ok("g")
	needs(p, `1`, status.NeedNone)

	p = start(t, flow(do("a"), do("g", in, after("a")), await("own", "go", after("g"))), "do a").ok("a", "do g")
	needs(p, `1`, status.NeedLater)
	p.ok("g")
	needs(p, `1`, status.NeedNow)

	p = start(t, flow(do("a"), do("g", in, each("k", "l"), parallel(1), after("a"))), "do a")
	for range 3 {
		p.signal("go", `1`)
		needs(p, `1`, status.NeedLater) // a may change how many keys there are
	}
	p.ok("a", "do g[k]")
	needs(p, `1`, status.NeedNone)
}

// A signal with an error code needs no payload, and its code and reason reach the group.
func TestSignalThatFailsGoesToAGroup(t *testing.T) {
	p := start(t, flow(do("a"), do("g", groupOf(await("w", "go")), after("a"))), "do a")
	p.event(machine.SignalReceived{Name: "go", Fail: "refused_by_ann", Reason: "too dear", By: "ann"})
	p.ok("a", "do g")
	if s := p.call("g", 0).Signals; len(s) != 1 || s[0].Fail != "refused_by_ann" || s[0].Reason != "too dear" || s[0].By != "ann" {
		t.Errorf("the call carries %+v", s)
	}
}

// Each of several groups takes one signal of a name for each step that waits for it. The last one takes
// the rest.
func TestGroupsShareSignals(t *testing.T) {
	in := groupOf(await("w", "go"))
	p := start(t, flow(do("a"), do("g", in, each("k", "l", "m"), parallel(1), after("a"))), "do a")
	for range 4 {
		p.signal("go", `1`)
	}
	p.ok("a", "do g[k]").carries("g[k]", "1 go").early(2, 3, 4)
	p.ok("g[k]", "do g[l]").carries("g[l]", "2 go")
	p.signal("go", `1`).early(3, 4, 5)
	p.ok("g[l]", "do g[m]").carries("g[m]", "3 go", "4 go", "5 go")
	p.signal("go", `1`).refused("is in group g, which is a run of its own")

	two := groupOf(await("w", "go"), do("h", groupOf(await("x", "go stop"))))
	p = start(t, flow(do("a"), do("g", two, after("a")), do("h", in, after("g"))), "do a")
	for range 3 {
		p.signal("go", `1`)
	}
	p.signal("stop", `1`).signal("stop", `1`) // only the first group takes them
	p.ok("a", "do g").carries("g", "1 go", "2 go", "4 stop", "5 stop")
	p.ok("g", "do h").carries("h", "3 go")
}

// Two groups that start in one decision do not take the same signal.
func TestGroupsThatStartTogether(t *testing.T) {
	in := groupOf(await("w", "go"))
	p := start(t, flow(do("a"), do("g", in, after("a")), do("h", in, after("a"))), "do a")
	p.signal("go", `1`).signal("go", `2`)
	p.ok("a", "do g", "do h").carries("g", "1 go").carries("h", "2 go")
}

// A signal goes to a group that starts in the decision about this signal.
func TestSignalGoesToAGroupThatStartsNow(t *testing.T) {
	p := start(t, flow(timer("cool", time.Minute), do("g", groupOf(await("w", "go")), after("cool"))))
	p.now = p.now.Add(time.Minute)
	p.signal("go", `1`, "do g").carries("g", "1 go").early()
}

// A retry with a new key starts another run. The signals of the former run have ended with it.
func TestRetryOfAGroupGetsOtherSignals(t *testing.T) {
	p := start(t, flow(do("a"), do("g", groupOf(await("w", "go")), after("a")), manual), "do a")
	p.signal("go", `1`).ok("a", "do g").carries("g", "1 go")
	p.ended("g", "alert parked")
	p.event(machine.RetryRequested{By: "ann"}, "do g").carries("g").early()

	// The outcome of the former call is not known: the retry sends a call with the same key.
	q := start(t, flow(do("a"), do("g", groupOf(await("w", "go")), tries(1), after("a")), manual), "do a")
	q.signal("go", `1`).ok("a", "do g")
	q.unknown("g", "internal", "alert parked")
	q.event(machine.RetryRequested{By: "ann"}, "do g").carries("g", "1 go")
}

// If the run of a group could not be started, its signals are not lost: the next call carries them, or
// another group.
func TestSignalsOfAGroupThatCouldNotStart(t *testing.T) {
	in := groupOf(await("w", "go"))
	again := func(s *spec) { tries(2)(s); on("no_room")(s) }
	p := start(t, flow(do("a"), do("g", in, again, after("a"))), "do a")
	p.signal("go", `1`).ok("a", "do g").fail("g", "no_room")
	p.signal("go", `2`).wait(time.Second, "do g").carries("g", "1 go", "2 go")

	p = start(t, flow(do("a"), do("g", in, after("a")), manual), "do a")
	p.signal("go", `1`).ok("a", "do g").permanent("g", "no_room", "alert parked").early(1)
	p.event(machine.RetryRequested{By: "ann"}, "do g").carries("g", "1 go").early()

	p = start(t, flow(do("a"), do("g", in, catch(`1`, "no_room"), after("a")), do("h", in, after("g"))), "do a")
	p.signal("go", `1`).ok("a", "do g").carries("g", "1 go")
	p.permanent("g", "no_room", "do h").carries("h", "1 go")
}

// The signals that belong to a running group count in the bound in bytes, until the group has ended.
func TestSignalsOfGroupsCountInTheBound(t *testing.T) {
	big := func(s string) string { return `"` + strings.Repeat(s, machine.MaxSignalBytes/2) + `"` }
	in := groupOf(await("w", "go"))
	p := start(t, flow(do("a"), do("g", in, after("a")), do("h", in, after("g"))), "do a")
	weight := p.s.Weight()
	p.signal("go", big("x")).ok("a", "do g").carries("g", "1 go")
	p.signal("go", big("y")).refused("the signals that no step has taken yet would have")
	p.ok("g", "do h")
	if got := p.s.Weight(); got > weight+10_000 {
		t.Errorf("the run has %d bytes, and before the signal it had %d", got, weight)
	}
}

// The run of a group has the signals with which it starts before its first step begins. A group in it gets
// its own in the same way.
func TestGroupStartsWithSignals(t *testing.T) {
	signals := []model.Signal{
		{Number: 7, Name: "go", ID: "id-7", Payload: js(`"early"`), By: "ann"}, {Number: 8, Name: "deep", ID: "id-8", Payload: js(`1`)}, {Number: 9, Name: "go", Payload: js(`"late"`)},
	}
	wf := flow(await("w", "go"), do("h", groupOf(await("d", "deep"))), await("x", "go", after("w")), await("y", "go", after("x")))
	p := startChild(t, wf, machine.Started{Signals: signals}, "do h")
	p.carries("h", "2 deep").state("w succeeded", "x succeeded", "y waiting").early()
	if w, x := p.output("w"), p.output("x"); w != `"early"` || x != `"late"` {
		t.Errorf("the outputs are %s and %s, want those of the signals in order", w, x)
	}
	p.event(machine.SignalReceived{Name: "go", ID: "id-7", Payload: js(`1`)}).early().state("y waiting") // the run knows the id
	p.signal("go", `3`)
	if got := p.view("y"); got.Signal != "go" || p.s.Nodes()[p.find("y")].Signal.Number != 4 {
		t.Errorf("the next signal of the run is %+v", p.s.Nodes()[p.find("y")].Signal)
	}
	if got := p.call("h", 0).Signals[0].ID; got != "id-8" {
		t.Errorf("the call of the group has a signal with id %q, want id-8", got)
	}
	void := startChild(t, wf, machine.Started{Void: true}).is("cancelled")
	void.early()
}

// A run that has turned back keeps no signal for a group.
func TestNoSignalForAGroupAfterTheTurn(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("g", groupOf(await("w", "go")), after("b"))), "do a")
	p.ok("a", "do b").fail("b", "declined", "undo a").signal("go", `1`).refused("is being undone")
	p = start(t, flow(do("a"), do("g", groupOf(await("w", "go")), after("a"), when(false)), do("b", after("g"))), "do a")
	p.signal("go", `1`).ok("a", "do b").signal("go", `1`).refused("which is a run of its own")
}
