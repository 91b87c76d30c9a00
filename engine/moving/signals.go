package moving

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// signals refuses the move if the run would lose an early signal: the run keeps the signal, a step
// of the old definition would take it later, and no step of the new definition takes it. The sender
// got the answer that the run has the signal, so the run must not lose it. If no step of the old
// definition would take the signal, signals does not refuse the move. A wait step without for_each
// and repeat takes only one signal, so a definition with fewer wait steps may take fewer signals.
func (c *comparison) signals() {
	if c.plan.Flow == nil || len(c.moment.Signals) == 0 {
		return
	}
	was, names := c.takers(c.now)
	will, _ := c.takers(c.plan.Flow)
	for k := range c.moment.Signals {
		s := &c.moment.Signals[k]
		i, next := was.Take(s), will.Take(s)
		if i < 0 || next >= 0 {
			continue
		}
		c.refuse(names[i], "let a step of the new definition wait for this signal with this payload; or migrate the run when step "+names[i]+" has taken it",
			"the run keeps signal %s for step %s, and no step of the new definition takes it", s.Name, names[i])
	}
}

// takers returns the wait steps of the workflow that can still take early signals of the run, also
// those in groups that have not started. For each it returns the name of the step, or of the group.
func (c *comparison) takers(wf *dsl.Workflow) (list model.Takers, names []string) {
	for i, step := range wf.Steps {
		room := c.room(i, step)
		if room == 0 {
			continue
		}
		if step.Wait != nil {
			list = append(list, model.Taker{Step: step, Room: room})
		} else {
			list = append(list, model.TakersInside(step, room)...)
		}
		for len(names) < len(list) {
			names = append(names, step.Name)
		}
	}
	return list, names
}

// room returns how many early signals step i can still take, if step i is a wait step. If step i is
// a group, room returns how many runs of the group can still start.
func (c *comparison) room(i int, step *dsl.Step) int {
	free := func(n *model.Node) bool { return !n.Ended() && !(step.Child != nil && model.GroupBegun(n)) }
	switch {
	case i < len(c.nodes) && (c.nodes[i].Item || c.nodes[i].Ended()):
		return 0
	case step.Repeat != nil, step.ForEach != nil && (i >= len(c.nodes) || !c.nodes[i].Expanded):
		return model.Unlimited
	case step.ForEach == nil && i < len(c.nodes) && !free(c.nodes[i]):
		return 0
	case step.ForEach == nil:
		return 1
	}
	room := 0
	for k := range c.nodes[i].Count {
		if free(c.nodes[c.nodes[i].First+k]) {
			room++
		}
	}
	return room
}
