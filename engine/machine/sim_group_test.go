package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// handovers counts the runs of groups in random worlds that started with signals, and the failures of calls
// that had signals and found no run.
var handovers struct{ given, absent atomic.Int64 }

// randomGroup makes a step with a child run a group in which steps, at one or two depths, wait for signals.
func randomGroup(c *chooser, s *spec) {
	names := []string{"inside", "inside", "go", "inside stop"}
	inside := []*spec{await("w", names[c.n(4)])}
	if c.chance(40) {
		inside = append(inside, await("x", names[c.n(4)]))
	}
	if c.chance(40) {
		inside = append(inside, do("h", groupOf(await("d", names[c.n(4)]))))
	}
	groupOf(inside...)(s)
	if c.chance(30) {
		on("no_room")(s)
	}
}

// numbersOf returns the numbers of the signals that a call carries.
func numbersOf(inv machine.Invoke) (numbers []int32) {
	for _, s := range inv.Signals {
		numbers = append(numbers, s.Number)
	}
	return numbers
}

// noRoom lets some calls for groups fail before their run exists. A call that is sent again fails in the
// same way.
func (w *world) noRoom(inv machine.Invoke, k *call) bool {
	if !w.wf.Steps[inv.Step].Listens() || w.kids[inv.IdempotencyKey] != nil {
		return false
	}
	again, sent := w.absent[inv.Attempt]
	if !sent {
		again = w.c.chance(15 + 15*min(1, len(inv.Signals)))
	}
	if w.absent == nil {
		w.absent = map[machine.AttemptID]bool{}
	}
	if w.absent[inv.Attempt] = again; !again {
		return false
	}
	if len(inv.Signals) > 0 {
		handovers.absent.Add(1)
	}
	k.answerAt = w.now.Add(time.Duration(1+w.c.n(3000)) * time.Millisecond)
	k.answer = machine.AttemptFailed{Attempt: inv.Attempt, Code: "no_room", Permanent: w.c.chance(50)}
	return true
}

// hand gives the signals of a call to the child run that it starts. Each run of a group has its signals
// from its start.
func (w *world) hand(inv machine.Invoke, of *kid) {
	of.signals = numbersOf(inv)
	of.starved = w.starved(inv)
	if len(of.signals) > 0 {
		handovers.given.Add(1)
	}
	w.note("    the child run starts with the signals %v", of.signals)
}

// starved returns an error if the run of a group starts with too few signals: the run around it keeps more
// signals for steps of its own than these steps can take before the group has ended.
func (w *world) starved(inv machine.Invoke) error {
	group := w.wf.Steps[inv.Step]
	got, kept := map[string]int{}, map[string]int{}
	for _, s := range inv.Signals {
		got[s.Name]++
	}
	for _, s := range w.s.EarlySignals() {
		if slices.ContainsFunc(group.WaitsInside(s.Name), func(x *dsl.Wait) bool { return s.Fits(x) == nil }) {
			kept[s.Name]++
		}
	}
	for name, count := range kept {
		steps := 0
		for i, step := range w.wf.Steps {
			if !step.Awaits(name) || w.s.Nodes()[i].Ended() || w.behind(i, inv.Step) {
				continue
			}
			if steps++; step.Repeat != nil || step.ForEach != nil {
				steps += machine.MaxSignals
			}
		}
		if count > steps && got[name] < len(group.WaitsInside(name)) {
			return fmt.Errorf("group %s starts with %d signals %s, and the run keeps %d for %d steps", group.Name, got[name], name, count, steps)
		}
	}
	return nil
}

// behind reports whether step i depends on the step `on`, directly or not.
func (w *world) behind(i, on int) bool {
	return slices.ContainsFunc(w.wf.Steps[i].After, func(j int) bool { return j == on || w.behind(j, on) })
}

// checkCarried checks that every call for a child run carries the signals with which the run started, with
// the ids that their senders gave.
func (w *world) checkCarried(inv machine.Invoke) error {
	if of := w.kids[inv.IdempotencyKey]; inv.Purpose == sdk.PurposeDo && of != nil && !slices.Equal(of.signals, numbersOf(inv)) {
		return fmt.Errorf("a call carries the signals %v, and its child run has started with %v", numbersOf(inv), of.signals)
	}
	for _, s := range inv.Signals {
		if s.ID != w.ids[s.Number] {
			return fmt.Errorf("signal %d has the id %q, and its sender gave %q", s.Number, s.ID, w.ids[s.Number])
		}
	}
	return nil
}

// checkHanded checks that no signal is lost, and that none is taken twice: each is in the list of early
// signals, or has ended a wait, or belongs to one group.
func (w *world) checkHanded() error {
	holders := map[int32]string{}
	holds := func(number int32, holder string) error {
		if was := holders[number]; was != "" && was != holder {
			return fmt.Errorf("signal %d is with %s, and also with %s", number, was, holder)
		}
		holders[number] = holder
		return nil
	}
	if w.ended == nil {
		w.ended = map[int32]string{}
	}
	for i, n := range w.s.Nodes() {
		if n.Signal.Number != 0 {
			w.ended[n.Signal.Number] = "the wait " + story.Node(w.s, w.wf, i).Name
		}
	}
	for number, wait := range w.ended {
		holders[number] = wait
	}
	for _, x := range w.s.EarlySignals() {
		if err := holds(x.Number, "the run"); err != nil {
			return err
		}
	}
	for key, of := range w.kids {
		if of.starved != nil {
			return of.starved
		}
		for _, number := range of.signals {
			if err := holds(number, "the child run "+key); err != nil {
				return err
			}
		}
	}
	for i, n := range w.s.Nodes() {
		for _, number := range n.Handed.Signals {
			if holders[number] == "" || !strings.HasPrefix(holders[number], "the child run ") {
				if err := holds(number, "the group "+story.Node(w.s, w.wf, i).Name); err != nil {
					return err
				}
			}
		}
	}
	for number := range int32(w.s.Signals()) {
		if holders[number+1] == "" {
			return fmt.Errorf("signal %d is lost", number+1)
		}
	}
	return nil
}

// checkGroups checks that the random worlds have groups that get signals.
func checkGroups(t *testing.T) {
	t.Helper()
	given, absent := handovers.given.Load(), handovers.absent.Load()
	t.Logf("%d runs of groups started with signals, %d calls with signals found no run", given, absent)
	if given < 40 || absent < 8 {
		t.Errorf("only %d runs of groups started with signals, and %d calls with signals found no run", given, absent)
	}
}

// childFailed is the failure of a child run that exists, as package children reports it.
func childFailed(id machine.AttemptID, code string, kept status.Kept) machine.AttemptFailed {
	return machine.AttemptFailed{Attempt: id, Code: code, Permanent: true, Kept: kept, Data: js(`{"run":"c","status":"failed"}`)}
}
