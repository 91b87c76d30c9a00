package machine

import (
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// A Need says how much a run needs a signal. If several runs can take a signal, because a run has groups, it
// should go to the run with the greatest Need.
type Need uint8

// Values of Need, the smallest first.
const (
	// NeedNone: the run has enough signals of this name, or can take none.
	NeedNone Need = iota
	// NeedLater: a step that lacks a signal has to wait for the end of a group, or it is in a group that has
	// not started.
	NeedLater
	// NeedSoon: a step of the run itself lacks a signal, and it depends on no open group that awaits the name.
	NeedSoon
	// NeedNow: a step of the run itself waits for the signal at this moment.
	NeedNow
)

// Need returns how much the run needs the signal. The early signals that the run keeps count as taken: a
// step for which the run keeps a signal lacks none. The parameter `wf` must be the workflow of the run. The
// Scratch may be nil.
func (s *Scratch) Need(wf *dsl.Workflow, state *State, ev SignalReceived) Need {
	d := handover{s.decider()}
	d.open(wf, state, Input{})
	x := ev.signal(0)
	for i := range d.count() {
		n := d.get(i)
		if n.Waits() && slices.Contains(strings.Split(n.Signal.Awaits, "\n"), x.Name) && x.Fits(d.step(n).Wait) == nil {
			return NeedNow
		}
	}
	early := d.early()
	lacks := func(takers model.Takers) bool {
		for k := range early {
			takers.Take(&early[k])
		}
		return takers.Take(&x) >= 0
	}
	behind := make([]bool, len(wf.Steps)) // steps that have to wait for the end of a group
	var inside model.Takers
	for i, step := range wf.Steps {
		if !step.AwaitsInside(x.Name) || d.get(i).Ended() {
			continue
		}
		d.follow(i, behind)
		inside = append(inside, model.TakersInside(step, d.pending(i))...)
	}
	switch {
	case lacks(d.takers(behind)):
		return NeedSoon
	case lacks(append(d.takers(nil), inside...)):
		return NeedLater
	}
	return NeedNone
}

// takers returns the steps of the run itself that can take early signals later. The parameter `except` is
// true for steps that are left out; nil = none is left out.
func (d handover) takers(except []bool) (list model.Takers) {
	for i, step := range d.wf.Steps {
		if step.Wait == nil || except != nil && except[i] {
			continue
		}
		if room := d.room(i); room > 0 {
			list = append(list, model.Taker{Step: step, Room: room})
		}
	}
	return list
}

// room returns how many early signals wait step i can take later. A step that waits now has looked at
// all early signals and could take none.
func (d handover) room(i int) int {
	n := d.get(i)
	free := func(n *model.Node) bool { return !n.Ended() && n.Undo == model.UndoNone && !n.Waits() }
	switch step := d.wf.Steps[i]; {
	case n.Ended():
		return 0
	case step.Repeat != nil || step.ForEach != nil && !n.Expanded:
		return model.Unlimited
	case step.ForEach != nil:
		return d.instances(n, free)
	case free(n):
		return 1
	}
	return 0
}

// pending returns how many runs of group i may start later, or model.Unlimited.
func (d handover) pending(i int) int {
	n := d.get(i)
	switch {
	case n.Ended() || n.Undo != model.UndoNone:
		return 0
	case d.step(n).ForEach == nil && d.starts(i, -1):
		return 1
	case d.step(n).ForEach == nil:
		return 0
	case !n.Expanded:
		return model.Unlimited
	}
	return d.instances(n, func(n *model.Node) bool { return !n.Ended() && n.Undo == model.UndoNone && !model.GroupBegun(n) })
}

// instances returns for how many instances of node n a condition holds.
func (d handover) instances(n *model.Node, holds func(*model.Node) bool) (count int) {
	for k := range n.Count {
		if holds(d.get(n.First + k)) {
			count++
		}
	}
	return count
}

// follow sets the field of each step in the list that depends on step i, directly or not.
func (d handover) follow(i int, list []bool) {
	for _, j := range d.wf.Steps[i].Before {
		if !list[j] {
			list[j] = true
			d.follow(j, list)
		}
	}
}
