package moving

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// signals refuses the move if the run keeps an early signal that a step would take later, and no
// step of the new definition takes it. The sender was told that the run has the signal, so the run
// must not lose it. A signal that no step of the old definition takes either is not a reason to
// refuse.
func (c *comparison) signals() {
	if c.plan.Flow == nil {
		return
	}
	for k := range c.moment.Signals {
		s := &c.moment.Signals[k]
		was := c.taker(c.now, s)
		if was == "" || c.taker(c.plan.Flow, s) != "" {
			continue
		}
		c.refuse(was, "let a step of the new definition wait for this signal with this payload; or migrate the run when step "+was+" has taken it",
			"the run keeps signal %s for step %s, and no step of the new definition takes it", s.Name, was)
	}
}

// taker returns the name of a step of the workflow that has not ended and can take the signal, or
// the name of a group with such a step; "" = there is none.
func (c *comparison) taker(wf *dsl.Workflow, s *model.Signal) string {
	for i, step := range wf.Steps {
		if i < len(c.nodes) && (c.nodes[i].Ended() || c.nodes[i].Item) {
			continue
		}
		var waits []*dsl.Wait
		switch {
		case step.Awaits(s.Name):
			waits = []*dsl.Wait{step.Wait}
		case step.AwaitsInside(s.Name):
			waits = step.WaitsInside(s.Name)
		}
		if slices.ContainsFunc(waits, func(w *dsl.Wait) bool { return s.Fits(w) == nil }) {
			return step.Name
		}
	}
	return ""
}
