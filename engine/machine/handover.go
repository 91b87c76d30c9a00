package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
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

// Takes reports whether a step of the run itself, and not of a group, can take the signal, now or
// later. The parameter `wf` must be the workflow of the run. The Scratch may be nil.
func (s *Scratch) Takes(wf *dsl.Workflow, state *State, ev SignalReceived) bool {
	d := s.decider()
	d.open(wf, state, Input{})
	x := ev.signal(0)
	return handover{d}.own(&x)
}

// own reports whether a step of the run itself can take the signal s, now or later. Such a step
// comes before all groups.
func (d handover) own(s *signal) bool {
	for i, step := range d.wf.Steps {
		if step.Awaits(s.Name) && !d.get(i).Ended() && s.Fits(step.Wait) == nil {
			return true
		}
	}
	return false
}

// begun reports whether the run that node n of a group starts next may exist already. If so, this
// run has got its signals.
func begun(n *model.Node) bool {
	return n.Open() || !n.Loop.Between && !n.Handed.Absent && n.Calls > n.Loop.Calls && n.Handed.Gen == n.Gen
}

// starts reports whether the group i may still start a run that does not exist yet. It leaves out
// the node in the parameter `except`.
func (d handover) starts(i, except int) bool {
	n := d.get(i)
	pending := func(k int, n *model.Node) bool {
		return k != except && !n.Ended() && n.Undo == model.UndoNone && !begun(n)
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

// last reports whether node i is the last one that may take signals of this name: no later
// iteration of node i and no other group that may still start can take them. If so, node i takes
// all signals of this name.
func (d handover) last(i int, name string) bool {
	n := d.get(i)
	if step := d.step(n); step.Repeat != nil {
		settings, err := d.settings(n)
		if err != nil || settings.MaxIterations == 0 || int(n.Loop.Iteration)+1 < settings.MaxIterations {
			return false // a later iteration may take the signal
		}
	}
	for k, step := range d.wf.Steps {
		if step.AwaitsInside(name) && d.starts(k, i) {
			return false
		}
	}
	return true
}

// give hands early signals over to the run that the next call of node i starts. If the run exists
// already, it keeps the signals that it has. For each name, a run takes at most as many signals as
// it has steps that wait for the name. Without this limit, the first of several groups would take
// all signals. The signals that it does not need would then be lost at its end.
func (d handover) give(i int) {
	n := d.get(i)
	step := d.step(n)
	if begun(n) || !step.Listens() {
		return
	}
	h := model.Handover{Gen: n.Gen}
	if n.Handed.Absent { // these signals were for a run that does not exist
		h.Signals = slices.Clone(n.Handed.Signals)
	}
	left := map[string]int{} // by name: how many signals the run may still take
	room := func(name string) bool {
		if _, known := left[name]; !known {
			left[name] = d.share(i, name)
		}
		return left[name] > 0
	}
	for _, s := range d.find(h.Signals) {
		room(s.Name)
		left[s.Name]--
	}
	for _, s := range d.early() {
		if !step.AwaitsInside(s.Name) || !room(s.Name) || fitsInside(step, &s) != nil || d.own(&s) {
			continue
		}
		left[s.Name]--
		h.Signals = append(h.Signals, s.Number)
		d.take(s.Number)
	}
	slices.Sort(h.Signals)
	// Record the handover if it differs from the recorded one. The field Gen matters because the
	// method `begun` reads it. For most nodes the generation is 0, as in the zero Handover, and
	// then nothing is recorded.
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

// share returns how many signals of a name the run of node i may take: one for each step that waits
// for the name, or all of them if no later run may take them.
func (d handover) share(i int, name string) int {
	if d.last(i, name) {
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
