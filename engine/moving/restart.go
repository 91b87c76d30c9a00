package moving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	aspect "github.com/saga-engine/engine/dsl/aspects"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Succession says what a new run takes over from a run that has ended (engine restart). If it has
// refusals, the run cannot be restarted in this way.
type Succession struct {
	Steps    []Heritage // one entry for each step of the new run, in the order of the graph
	Refusals []Refusal
	Vars     dsl.Value // variables of the new run
	Passed   bool      // the new run takes over the pivot, so it is not undone any more
}

// A Heritage says what the new run does with one of its steps.
type Heritage struct {
	Step int    // index of the step in the workflow of the new run
	Name string // name in the new definition
	Was  string // name in the old run, if it differs from Name; otherwise ""
	// Number of the step's node in the old run; -1 = the old run does not have the step.
	Node  int
	State status.StepState
	Taken bool // the new run takes over the result; false = the step runs in the new run
	// Effect is true if the step has an effect that the old run has not undone, or if a child run
	// of the step keeps effects. If Taken is true, the new run takes over this effect. If Taken is
	// false, the step runs again, and may cause the effect a second time.
	Effect bool
	Undoes bool // only with Taken and Effect: the new run undoes the effect if it turns back
}

// Restart says what a new run of the workflow `next` takes over from an ended run, if it starts
// from the step with the given name. The parameters `now`, `run` and `nodes` are the workflow and
// the state of the ended run. If the parameter `again` is true, steps may run although their
// effects in the ended run stay.
func Restart(now, next *dsl.Workflow, run *model.Run, nodes []*model.Node, step string, again bool) Succession {
	s := &succession{comparison: comparison{now: now, next: next, run: run, nodes: nodes}, again: again}
	if why := s.whole(step); why != (Refusal{}) {
		return Succession{Refusals: []Refusal{why}}
	}
	s.match()
	s.before = ancestors(next, s.from)
	for _, i := range next.Order {
		s.step(i)
	}
	s.gone()
	s.pivot()
	s.out.Vars = run.Vars.V
	if now.Digest != next.Digest {
		s.variables()
		s.out.Vars = s.plan.Vars
	}
	for i := range s.plan.Refusals {
		if r := &s.plan.Refusals[i]; s.doubt && strings.HasPrefix(r.Next, "restart from") {
			r.Next = ""
		}
	}
	s.out.Refusals = s.plan.Refusals
	return s.out
}

// A succession computes one Succession.
type succession struct {
	comparison
	out   Succession
	again bool

	from int // index of the step from which the new run starts
	// Indexes of the steps on which the step in the field `from` depends, directly or not.
	before map[int]bool
	// Number of the node in the old run, by index of the step in the new workflow; -1 = none.
	nodeOf []int
	doubt  bool         // a refusal applies to a restart from any step
	taken  map[int]bool // indexes of the steps whose results are taken over
}

// whole checks the conditions that concern the whole run, or the step from which the new run
// starts. It returns the first reason to refuse the restart; a zero Refusal = there is no such
// reason.
func (s *succession) whole(step string) Refusal {
	switch {
	case s.next == nil || s.now == nil:
		return Refusal{Reason: "the definition cannot be read", Next: "look for its error in the log of the engine"}
	case s.run.Parent.Run != 0:
		return Refusal{Reason: fmt.Sprintf("the run is a child of run %s, which depends on it", s.run.Parent.Name), Next: "restart the parent"}
	case s.run.Finished == 0:
		return Refusal{Reason: "the run has not ended", Next: fmt.Sprintf("`engine explain %s` shows what it accepts now", s.run.Name)}
	case s.now.Notifies != "":
		return Refusal{Reason: "the run is a notification"}
	case s.now.Name != s.next.Name:
		return Refusal{Reason: fmt.Sprintf("the run is of workflow %q, not of workflow %q", s.now.Name, s.next.Name)}
	}
	s.from = slices.IndexFunc(s.next.Steps, func(x *dsl.Step) bool { return x.Name == step })
	if s.from < 0 {
		var names []string
		for _, i := range s.next.Order {
			names = append(names, s.next.Steps[i].Name)
		}
		return Refusal{Step: step, Reason: fmt.Sprintf("workflow %s has no step %q", s.next.Name, step), Next: "its steps are " + strings.Join(names, ", ")}
	}
	return Refusal{}
}

// match sets the field `nodeOf`: it finds the node of the old run for each step of the new
// workflow.
func (s *succession) match() {
	s.taken = map[int]bool{}
	s.nodeOf = make([]int, len(s.next.Steps))
	byName := map[string]int{}
	for i, x := range s.next.Steps {
		s.nodeOf[i] = -1
		byName[x.Name] = i
	}
	for i := range s.oldSteps() {
		name := s.now.Steps[i].Name
		if to, moved := s.next.Moved[name]; moved && s.now.Digest != s.next.Digest {
			name = to
		}
		k, ok := byName[name]
		switch {
		case !ok:
		case s.nodeOf[k] >= 0:
			s.refuse(name, "remove the moved block", "two steps of the run would both become step %s", name)
		default:
			s.nodeOf[k] = i
		}
	}
}

// oldSteps yields the numbers of those nodes of the old run that are steps of its workflow.
func (s *succession) oldSteps() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i, n := range s.nodes {
			if i < len(s.now.Steps) && !n.Item && !s.now.Steps[i].Gone && !yield(i) {
				return
			}
		}
	}
}

// ancestors returns the indexes of all steps on which step i depends, directly or not.
func ancestors(wf *dsl.Workflow, i int) map[int]bool {
	found := map[int]bool{}
	var walk func(i int)
	walk = func(i int) {
		for _, j := range wf.Steps[i].After {
			if !found[j] {
				found[j] = true
				walk(j)
			}
		}
	}
	walk(i)
	return found
}

// step decides whether the new run takes over step i, and adds the step to the result.
func (s *succession) step(i int) {
	x := s.next.Steps[i]
	h := Heritage{Step: i, Name: x.Name, Node: s.nodeOf[i], State: status.StepPending}
	if h.Node < 0 {
		s.out.Steps = append(s.out.Steps, h)
		return
	}
	n := s.nodes[h.Node]
	h.State = n.Shown()
	if was := s.now.Steps[h.Node].Name; was != x.Name {
		h.Was = was
	}
	sum := s.remains(n)
	h.Effect = sum == effectStays || s.keeps(n)
	if sum == effectInDoubt {
		s.doubt = true
		s.refuse(x.Name, "find out what happened, and start a new run", "nobody knows whether step %s has an effect: its outcome is unknown, or its undo has failed and was skipped", x.Name)
	}
	h.Taken = s.takes(i, n, sum)
	switch {
	case h.Taken:
		s.taken[i] = true
		h.Undoes = sum == effectStays && x.Undo != nil && !x.NoUndo && !s.passes()
		s.unchanged(&h, n)
	case h.Effect && !s.again:
		s.secondEffect(x.Name, sum)
	}
	s.out.Steps = append(s.out.Steps, h)
}

// secondEffect refuses the restart, because the step would take effect a second time. The parameter
// `sum` is what remains of the step's own effects. If the old run has undone these effects, only a
// child run keeps effects. In this case secondEffect does not propose a restart from a later step:
// such a restart is not possible, because the result of an undone step cannot be taken over.
func (s *succession) secondEffect(step string, sum remainder) {
	next := "restart from a later step; or allow the second effect with --again"
	switch sum {
	case effectUndone:
		s.refuse(step, "allow the second effect with --again",
			"a child run of step %s keeps effects, although the run has undone the step: in the new run the step would take effect a second time", step)
	case effectNone:
		s.refuse(step, next, "a child run of step %s keeps effects: in the new run the step would take effect a second time", step)
	default:
		s.refuse(step, next, "step %s has taken effect, and nothing has undone it: in the new run it would take effect a second time", step)
	}
}

// takes reports whether the new run takes over the result of step i. The parameter `n` is the node
// of the step in the old run, and the parameter `sum` is what remains of the effects of the step.
func (s *succession) takes(i int, n *model.Node, sum remainder) bool {
	if i == s.from || !n.Well() {
		return false
	}
	for _, j := range s.next.Steps[i].After {
		if !s.taken[j] {
			return false
		}
	}
	if sum != effectUndone {
		return true
	}
	if s.before[i] {
		s.refuse(s.next.Steps[i].Name, "restart from step "+s.next.Steps[i].Name+" or from an earlier one",
			"the run has undone step %s, so there is nothing left that the new run could build on", s.next.Steps[i].Name)
	}
	return false
}

// A remainder says what remains of the effects of a step after the end of its run.
type remainder uint8

const (
	effectNone remainder = iota
	effectUndone
	effectStays
	effectInDoubt
)

// keeps reports whether a child run of the step keeps effects, which no run can undo any more.
func (s *succession) keeps(n *model.Node) bool {
	if !n.Expanded {
		return n.Kept.Stay()
	}
	return slices.ContainsFunc(s.nodes[n.First:n.First+n.Count], func(item *model.Node) bool { return item.Kept.Stay() })
}

// remains returns what remains of the effects of a step. It ignores the effects that child runs of
// the step keep. If the step has instances, the result is the largest remainder of an instance, in
// the order of the constants above. If some instances were undone and the effects of others stay,
// the result is effectInDoubt: the new run could neither keep nor repeat the step.
func (s *succession) remains(n *model.Node) remainder {
	if !n.Expanded {
		return remainsOf(n)
	}
	sum := effectNone
	for k := n.First; k < n.First+n.Count; k++ {
		one := remainsOf(s.nodes[k])
		if sum == effectUndone && one == effectStays || sum == effectStays && one == effectUndone {
			one = effectInDoubt
		}
		sum = max(sum, one)
	}
	return sum
}

func remainsOf(n *model.Node) remainder {
	switch {
	case n.Kept.Has(status.KeptInDoubt):
		return effectInDoubt
	case n.OwnEffect() == status.EffectNone:
		return effectNone
	case n.Undo == model.UndoDone:
		return effectUndone
	case n.OwnEffect() == status.EffectMaybe, n.Present() == status.EffectMaybe, n.UndoDoubt > 0, n.Open():
		return effectInDoubt
	case n.Undo == model.UndoNone, n.Undo == model.UndoDeclared:
		return effectStays
	case n.Undo == model.UndoLeft && n.Und.Miss == model.MissNone && (n.Und.Total == 0 || n.Kept.Has(status.KeptLeft)):
		// A person left the effect in place with cancel --no-compensate, or the child run of the
		// node could undo nothing.
		return effectStays
	}
	return effectInDoubt
}

// unchanged refuses to take over a step that the new run could not undo, or that the new definition
// changes.
func (s *succession) unchanged(h *Heritage, n *model.Node) {
	x := s.next.Steps[h.Step]
	if h.Undoes && x.Undo.Do.Agent == s.next.ChildAgent() {
		s.refuse(x.Name, "restart from step "+x.Name+" or from an earlier one",
			"step %s has started child runs, and only the old run can have them undone", x.Name)
	}
	if s.now.Digest == s.next.Digest {
		return
	}
	a, b := aspects(s.now.Steps[h.Node]), aspects(x)
	if n.State != status.StepSkipped {
		for _, name := range []string{aspect.Kind, aspect.Action, aspect.Undo, "for_each"} {
			if a[name] != b[name] {
				s.refuse(x.Name, "leave this part as it was; or restart from this step or from an earlier one",
					"step %s %s, and its %s has changed", x.Name, progress(n), name)
			}
		}
	}
	s.fits(x, n)
}

// passes reports whether the new run takes over a pivot that has succeeded.
func (s *succession) passes() bool {
	p := s.next.Pivot
	if !s.run.Passed || p < 0 || s.nodeOf[p] < 0 || s.nodeOf[p] != s.now.Pivot {
		return false
	}
	return p != s.from && !s.depends(p)
}

// depends reports whether step i depends on the step from which the new run starts.
func (s *succession) depends(i int) bool { return ancestors(s.next, i)[s.from] }

// gone refuses the restart if a step of the old run still has an effect, or may have one, and the
// new definition does not have this step.
func (s *succession) gone() {
	for i := range s.oldSteps() {
		if slices.Contains(s.nodeOf, i) {
			continue
		}
		if sum := s.remains(s.nodes[i]); sum == effectStays || sum == effectInDoubt || s.keeps(s.nodes[i]) {
			s.refuse(s.now.Steps[i].Name, "keep the step; if it only has another name, write a moved block",
				"step %s %s, and the new definition does not have it", s.now.Steps[i].Name, progress(s.nodes[i]))
		}
	}
}

// pivot refuses the restart in two cases. First, the pivot of the old run has succeeded, and the
// new run would not take it over as its own pivot. Second, no pivot of the old run has succeeded,
// and the new run would take over a succeeded step that is the pivot only in the new definition.
func (s *succession) pivot() {
	p := s.next.Pivot
	if s.run.Passed {
		if s.out.Passed = p >= 0 && s.taken[p] && s.nodeOf[p] == s.now.Pivot; !s.out.Passed {
			s.pivotLost(p)
		}
		return
	}
	if p >= 0 && s.taken[p] && s.nodes[s.nodeOf[p]].State == status.StepSucceeded {
		s.refuse("", "leave the pivot at its step", "the pivot is another step in the new definition, and this step has succeeded already")
	}
}

// pivotLost refuses the restart, because the new run would not take over the pivot of the old run.
// If the step of the pivot has failed, the pivot may still have taken effect: this happens if its
// child run has passed a pivot of the child. In this case a restart from any step is refused.
func (s *succession) pivotLost(p int) {
	if p >= 0 && s.nodeOf[p] >= 0 && !s.nodes[s.nodeOf[p]].Well() {
		s.refuse("", "start a new run", "the pivot has taken effect, but its step has failed, so the new run could not take it over")
		return
	}
	s.refuse("", "restart from a step after the pivot", "the pivot has succeeded, and the new run would not take it over")
}
