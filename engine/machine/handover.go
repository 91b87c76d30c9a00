package machine

import (
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// This file hands early signals over to groups. A group is a run of its own, and this run does not
// exist before the group starts. So the run around the group keeps a signal for a step in the
// group. The call that starts the group's run carries the signal. From then on the signal belongs
// to the group's run:
//
//   - A call with the same idempotency key finds the same run, so it carries the same signals.
//   - A call with another key starts another run. This run gets signals that are in the list of
//     early signals at that time.
//   - If a call fails and no run exists, the signals go to the next call, or back to the list.
//
// See docs/decisions/0037-groups.md.

// early returns the signals that no wait step has taken and that belong to no group, the oldest
// first. The signals that the event of this decision brings are the last ones.
func (d handover) early() []signal {
	list := d.s.signals.list
	if len(d.arrived) > 0 {
		list = append(slices.Clip(list), d.arrived...)
	}
	list = inOrder(slices.Clip(list), d.returned)
	if len(d.taken) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(s signal) bool { return d.taken[s.Number] })
}

// take notes that this decision has used the signal with this number.
func (d handover) take(number int32) {
	if d.taken == nil {
		d.taken = map[int32]bool{}
	}
	d.taken[number] = true
}

// fitsInside returns nil if a wait step in the group can take the signal s. If no wait step can
// take it, fitsInside returns the error of the first wait step for the name of the signal. The
// group must have such a wait step.
func fitsInside(group *dsl.Step, s *signal) error {
	var first error
	for _, w := range group.WaitsInside(s.Name) {
		err := s.Fits(w)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// starts reports whether the group with the number i may still start a run that does not exist yet.
// The parameter `except` is the number of a node whose run does not count.
func (d handover) starts(i, except int) bool {
	n := d.get(i)
	pending := func(k int, n *model.Node) bool {
		return k != except && !n.Ended() && n.Undo == model.UndoNone && !model.GroupBegun(n)
	}
	switch {
	case n.Ended() || n.Undo != model.UndoNone:
		return false
	case d.step(n).ForEach == nil:
		return pending(i, n)
	case !n.Expanded:
		return true
	}
	// Begin with the next instance, because most instances before it have begun.
	for k := range n.Count {
		if k := n.First + (n.Next+k)%n.Count; pending(k, d.get(k)) {
			return true
		}
	}
	return false
}

// last reports whether node i is the last node that may take early signals of this name. If it is,
// node i takes all signals that are left. It is not the last one if another run of a group may
// still start, and take such a signal. It is also not the last one if a step that depends on the
// group may take such a signal. behind[k] is true if step k depends on the group.
func (d handover) last(i int, name string, behind []bool) bool {
	for k, step := range d.wf.Steps {
		if step.AwaitsInside(name) && d.starts(k, i) || behind[k] && step.Awaits(name) && d.room(k) > 0 {
			return false
		}
	}
	return true
}

// give hands early signals over to the run that the next call of node i starts. If the run exists
// already, it keeps the signals that it has. Signals that are reserved for steps of the run itself
// stay in the list. The method `share` limits how many signals of one name the group's run takes.
// Without this limit, the first of several groups would take all signals. At the end of this group,
// the signals that it did not need would be lost.
func (d handover) give(i int) {
	n := d.get(i)
	step := d.step(n)
	if model.GroupBegun(n) || !step.Listens() {
		return
	}
	h := model.Handover{Gen: n.Gen}
	if n.Handed.Absent { // the last call failed, so no run has got these signals
		h.Signals = slices.Clone(n.Handed.Signals)
	}
	early := d.early()
	behind := make([]bool, len(d.wf.Steps)) // steps that depend on the group
	var own model.Takers                    // steps of the run itself that take signals first
	if len(early) > 0 {
		d.follow(n.Of(), behind)
		// The steps that depend on the group do not take signals before the group: the group may
		// need a signal to end, and these steps begin only after this end.
		own = d.takers(behind)
	}
	left := map[string]int{} // by name: how many signals the run of the group may still take
	room := func(name string) bool {
		if _, known := left[name]; !known {
			left[name] = d.share(i, name, behind)
		}
		return left[name] > 0
	}
	for _, s := range d.find(h.Signals) {
		room(s.Name)
		left[s.Name]--
	}
	for _, s := range early {
		inside := step.AwaitsInside(s.Name)
		if inside && !room(s.Name) || own.Take(&s) >= 0 || !inside || fitsInside(step, &s) != nil {
			continue
		}
		left[s.Name]--
		h.Signals = append(h.Signals, s.Number)
		d.take(s.Number)
	}
	slices.Sort(h.Signals)
	// Do not record the new handover if it has no signals and equals the recorded one. The field
	// Gen counts, too, because the function model.GroupBegun reads it. Most nodes without signals
	// have the generation 0. For these nodes, the handover is zero and nothing is recorded.
	if len(h.Signals) > 0 || len(n.Handed.Signals) > 0 || n.Handed.Absent || h.Gen != n.Handed.Gen {
		d.edit(i).Handed = h
	}
}

// retract takes back the signals that this decision has handed over to node i, because the call
// that was to carry them is not made.
func (d handover) retract(i int) {
	n, was := d.edit(i), d.s.before(i).Handed
	for _, number := range n.Handed.Signals {
		if !slices.Contains(was.Signals, number) {
			delete(d.taken, number)
		}
	}
	n.Handed = was
}

// share returns how many signals of a name the run of node i may take: one for each step in the
// group that waits for the name. But if node i is the last node that may take them (method `last`),
// its run may take all signals that a run can keep.
func (d handover) share(i int, name string, behind []bool) int {
	if d.last(i, name, behind) {
		return maxSignals
	}
	return len(d.step(d.get(i)).WaitsInside(name))
}

// signals returns the signals that the calls of node n carry; nil = none.
func (d handover) signals(n *model.Node) []signal {
	if len(n.Handed.Signals) == 0 {
		return nil
	}
	return d.find(n.Handed.Signals)
}

// find returns the signals with these numbers.
func (d handover) find(numbers []int32) (found []signal) {
	for _, number := range numbers {
		for _, list := range [...][]signal{d.s.signals.handed, d.s.signals.list, d.arrived} {
			if k, ok := find(list, number); ok {
				found = append(found, list[k])
				break
			}
		}
	}
	return found
}

// failed is called when a call of a node has failed. A child run that has ended gives its name as
// the data of the failure (package children). So if the failure has no data, the group has no run,
// and the signals are for the next call.
func (d handover) failed(ev AttemptFailed) {
	if n := d.get(ev.Attempt.Node); ev.Data.IsNull() && !n.Open() && d.step(n).Listens() {
		d.edit(ev.Attempt.Node).Handed.Absent = true
	}
}

// end is called at the end of the forward work of node i. After a success, the run of the group
// needs no call any more, so the node drops the signals. If the group has no run, the signals go
// back to the list, where another group may take them. After any other failure the node keeps the
// signals, because a person may repeat the same call.
func (d handover) end(i int) {
	n := d.get(i)
	if len(n.Handed.Signals) == 0 || !n.Well() && !n.Handed.Absent {
		return
	}
	if n.Handed.Absent {
		d.returned = append(d.returned, d.find(n.Handed.Signals)...)
	}
	d.edit(i).Handed.Signals = nil
}

// Need returns how much the run needs the signal. The early signals that the run keeps count as
// taken: a step for which the run keeps a signal lacks none. The parameter `wf` must be the
// workflow of the run. The Scratch may be nil.
func (s *Scratch) Need(wf *dsl.Workflow, state *State, ev SignalReceived) status.Need {
	d := handover{s.decider()}
	d.open(wf, state, Input{})
	x := ev.signal(0)
	for i := range d.count() {
		n := d.get(i)
		if n.Waits() && slices.Contains(strings.Split(n.Signal.Awaits, "\n"), x.Name) && x.Fits(d.step(n).Wait) == nil {
			return status.NeedNow
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
		return status.NeedSoon
	case lacks(append(d.takers(nil), inside...)):
		return status.NeedLater
	}
	return status.NeedNone
}

// takers returns the steps of the run itself that can take early signals later. Step k is left out
// if except[k] is true; nil = no step is left out.
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

// room returns how many early signals wait step i can take later. A step that waits now has looked
// at all early signals and could take none.
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

// instances returns the number of instances of node n for which the function `holds` returns true.
func (d handover) instances(n *model.Node, holds func(*model.Node) bool) (count int) {
	for k := range n.Count {
		if holds(d.get(n.First + k)) {
			count++
		}
	}
	return count
}

// follow sets list[k] to true for each step k that depends on step i, directly or through other
// steps.
func (d handover) follow(i int, list []bool) {
	for _, j := range d.wf.Steps[i].Before {
		if !list[j] {
			list[j] = true
			d.follow(j, list)
		}
	}
}
