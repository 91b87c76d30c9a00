package moving

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	aspect "github.com/saga-engine/engine/dsl/aspects"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Plan says what moving a run to another definition changes. If it has refusals, the run cannot
// be moved.
type Plan struct {
	// All steps that at least one of the two definitions has, in the order of their nodes.
	Steps    []Step
	Refusals []Refusal
	Vars     dsl.Value // the run's variables for the new definition
	// The new workflow of the run; nil if there is a refusal. The index of a step in this workflow
	// is the number of the step's node.
	Flow   *dsl.Workflow
	StepOf []int32 // see model.Move
	// Deadline is the deadline that the new definition gives to the run; 0 = none. It counts only
	// if NewDeadline is true. Otherwise the run keeps its present deadline.
	Deadline    model.Instant
	NewDeadline bool
}

// A Step says what the move does with one step of the run.
type Step struct {
	Node    int
	Name    string // name in the new definition; for a removed step, name in the old one
	Was     string // earlier name of a renamed step; "" = it is not renamed
	Fate    Fate
	Changed []string // names of the attributes and blocks of a kept step that differ, sorted
	Anew    bool     // the step has no effect yet, and starts again from the beginning
	Fresh   bool     // only with Anew: the step has never begun
	State   status.StepState
	Ended   bool // the step has ended
}

// A Fate says whether both definitions have a step.
type Fate uint8

// The fates of a step.
const (
	Kept Fate = iota + 1
	Added
	Removed
)

// String returns the name of the fate, such as kept.
func (f Fate) String() string {
	switch f {
	case Kept:
		return "kept"
	case Added:
		return "added"
	case Removed:
		return "removed"
	}
	return "invalid"
}

// A Refusal says why a run cannot be moved.
type Refusal struct {
	Step   string // name of the step; "" = the reason is in the run itself
	Reason string // whole reason, with the name of the step
	Next   string // what a person should do
}

// String returns the reason and what a person should do.
func (r Refusal) String() string {
	if r.Next == "" {
		return r.Reason
	}
	return r.Reason + "; " + r.Next
}

// Compare compares the workflow that a run has now with the workflow `next`. The parameters `run`
// and `nodes` are the state of the run.
func Compare(now, next *dsl.Workflow, run *model.Run, nodes []*model.Node, moment Moment) Plan {
	c := &comparison{now: now, next: next, run: run, nodes: nodes, moment: moment}
	if why := c.whole(); why != (Refusal{}) {
		return Plan{Refusals: []Refusal{why}}
	}
	c.match()
	for i := range c.plan.Steps {
		c.judge(&c.plan.Steps[i])
	}
	c.pivot()
	c.variables()
	c.deadline()
	c.signals()
	if len(c.plan.Refusals) > 0 {
		c.plan.Flow = nil
	}
	return c.plan
}

// A comparison computes one Plan.
type comparison struct {
	now, next *dsl.Workflow
	run       *model.Run
	nodes     []*model.Node
	moment    Moment
	plan      Plan
}

func (c *comparison) refuse(step, next, format string, args ...any) {
	c.plan.Refusals = append(c.plan.Refusals, Refusal{Step: step, Reason: fmt.Sprintf(format, args...), Next: next})
}

// whole returns the first reason against the move that does not depend on a single step; zero =
// there is no such reason.
func (c *comparison) whole() Refusal {
	switch {
	case c.next == nil:
		return Refusal{Reason: "this engine cannot read the new definition", Next: "look for its error in the log of the engine"}
	case c.run.Finished != 0:
		return Refusal{Reason: "the run has ended", Next: fmt.Sprintf("`engine restart %s --from STEP` starts a new run from its results", c.run.Name)}
	case c.run.Phase == model.PhaseUndo:
		return Refusal{Reason: "the run is being undone: it ends with the definition that it has"}
	case c.run.Turning:
		return Refusal{Reason: "the run is about to turn back: it ends with the definition that it has"}
	case c.run.Lost():
		return Refusal{Reason: "the run is parked because engines died", Next: fmt.Sprintf("`engine retry %s` comes first", c.run.Name)}
	case c.now.Name != c.next.Name:
		return Refusal{Reason: fmt.Sprintf("the run is of workflow %q, not of workflow %q", c.now.Name, c.next.Name)}
	case c.now.Digest == c.next.Digest:
		return Refusal{Reason: "the run has this definition already"}
	case len(c.nodes)+len(c.next.Steps) > model.MaxSteps:
		return Refusal{Reason: "the run has too many instances to be moved"}
	}
	return Refusal{}
}

// match finds, for each node of the run, its step in the new definition. New steps get the numbers
// after those of all nodes. The method sets the fields Steps, StepOf and Flow of the plan.
func (c *comparison) match() {
	byName := map[string]int{}
	for i, s := range c.next.Steps {
		byName[s.Name] = i
	}
	stepOf := make([]int32, len(c.nodes), len(c.nodes)+len(c.next.Steps))
	taken := map[int]string{}
	for i, n := range c.nodes {
		stepOf[i] = -1
		if n.Item || i >= len(c.now.Steps) || c.now.Steps[i].Gone {
			continue
		}
		was := c.now.Steps[i].Name
		name := was
		if to, moved := c.next.Moved[was]; moved {
			name = to
		}
		k, ok := byName[name]
		if !ok {
			c.plan.Steps = append(c.plan.Steps, Step{Node: i, Name: was, Fate: Removed, State: n.State, Ended: n.Ended()})
			continue
		}
		if other, twice := taken[k]; twice {
			c.refuse(was, "remove the moved block", "steps %s and %s of the run would both become step %s", other, was, name)
			continue
		}
		taken[k] = was
		stepOf[i] = int32(k)
		s := Step{Node: i, Name: name, Fate: Kept, State: n.State, Ended: n.Ended()}
		if name != was {
			s.Was = was
		}
		c.plan.Steps = append(c.plan.Steps, s)
	}
	for _, k := range c.next.Order {
		if _, ok := taken[k]; !ok {
			c.plan.Steps = append(c.plan.Steps, Step{Node: len(stepOf), Name: c.next.Steps[k].Name, Fate: Added, State: status.StepPending})
			stepOf = append(stepOf, int32(k))
		}
	}
	c.plan.StepOf = stepOf
	c.plan.Flow = c.next.Renumbered(c.now, stepOf)
}

// judge sets the fields Changed and Anew of a step, and refuses the move if it is not safe for this
// step.
func (c *comparison) judge(s *Step) {
	if s.Fate == Added {
		return
	}
	n := c.nodes[s.Node]
	if s.Fate == Removed {
		c.removed(s, n)
		return
	}
	s.Changed = c.changed(s)
	switch {
	case len(s.Changed) == 0:
	case c.open(n):
		c.inFlight(s, "the step has changed ("+strings.Join(s.Changed, ", ")+")")
		return
	case n.Clearing:
		c.refuse(s.Name, "wait until its next attempt has begun", "step %s is being undone before its next attempt, and the step has changed (%s)",
			s.Name, strings.Join(s.Changed, ", "))
		return
	default:
		c.begun(s, n)
	}
	c.dependencies(s, n)
	c.result(s, n)
}

// changed returns the names of those attributes and blocks of a kept step that the new definition
// changes.
func (c *comparison) changed(s *Step) []string {
	was, now := c.now.Steps[s.Node], c.plan.Flow.Steps[s.Node]
	a, b := aspects(was), aspects(now)
	set := map[string]bool{}
	for name, text := range a {
		set[name] = b[name] != text
	}
	for name, text := range b {
		set[name] = a[name] != text
	}
	maps.DeleteFunc(set, func(_ string, differs bool) bool { return !differs })
	if !slices.Equal(was.After, now.After) {
		set["depends_on"] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// aspects returns the source texts of the attributes and blocks of a step, by their names. A step
// that does not come from a file has no source texts. For such a step, aspects returns only the
// kind, the action and the undo.
func aspects(s *dsl.Step) map[string]string {
	if s.Aspects != nil {
		return s.Aspects()
	}
	out := map[string]string{aspect.Kind: s.Does(), aspect.Action: s.Do.Agent + "." + s.Do.Name, aspect.Undo: "none"}
	if s.Undo != nil && !s.NoUndo {
		out[aspect.Undo] = s.Undo.Do.Agent + "." + s.Undo.Do.Name
	}
	return out
}

// open reports whether a call of a node, or of one of its instances, is in flight.
func (c *comparison) open(n *model.Node) bool {
	if n.Open() {
		return true
	}
	for k := n.First; n.Expanded && k < n.First+n.Count; k++ {
		if c.nodes[k].Open() {
			return true
		}
	}
	return false
}

// inFlight refuses the move because a call of a step is in flight. The parameter `why` says what
// the new definition does to the step. The advice depends on the kind of the step. An ordinary call
// ends while the run is paused. A child run does not end because its parent is paused. A group does
// not end during the pause either, because no step of the group starts then.
func (c *comparison) inFlight(s *Step, why string) {
	switch k := c.now.Steps[s.Node].Child; {
	case k == nil:
		c.refuse(s.Name, "pause the run, wait until the call has ended, and migrate it then", "a call of step %s is in flight, and %s", s.Name, why)
	case k.Group:
		c.refuse(s.Name, "wait until the group has ended, and migrate the run then: while it is paused, the group does not end", "the group %s is open, and %s", s.Name, why)
	default:
		c.refuse(s.Name, "pause the run, bring the child run to its end (`engine explain` names it), and migrate the run then",
			"the child run of step %s is open, and %s", s.Name, why)
	}
}

// untouched reports whether a node has done nothing yet that the new definition could contradict.
func untouched(n *model.Node) bool {
	return !n.Ended() && n.Calls == 0 && !n.Expanded && !n.Waits() && n.Effect() == status.EffectNone &&
		n.Signal == (model.Reception{}) && n.Loop == (model.Loop{})
}

// harmless reports whether a node certainly has no effect, even if it was called, so that it may
// start again from the beginning.
func harmless(n *model.Node) bool {
	return n.Effect() == status.EffectNone && !n.Expanded && !n.Waits() && !n.Well() && n.Loop == (model.Loop{}) && n.UndoDoubt == 0
}

// begun decides about a changed step that has no call in flight.
func (c *comparison) begun(s *Step, n *model.Node) {
	if untouched(n) || harmless(n) {
		s.Anew, s.Fresh = true, untouched(n)
		return
	}
	if n.State == status.StepSkipped {
		return
	}
	for _, name := range []string{aspect.Kind, aspect.Action, aspect.Undo, "for_each"} {
		if slices.Contains(s.Changed, name) {
			c.refuse(s.Name, "leave this part as it was; if the step only has another name, write a moved block",
				"step %s %s, and its %s has changed", s.Name, progress(n), name)
		}
	}
	if n.Ended() {
		return
	}
	for _, name := range []string{"wait", "timer", "repeat"} {
		if slices.Contains(s.Changed, name) {
			c.refuse(s.Name, "leave this block as it was until the step has ended", "step %s %s, and its %s block has changed", s.Name, progress(n), name)
		}
	}
}

// progress says how far a node has come, in words that end a sentence about the step.
func progress(n *model.Node) string {
	switch {
	case n.Ended() && n.Well():
		return "has finished (" + n.State.String() + ")"
	case n.Effect() == status.EffectMaybe:
		return "may have taken effect"
	case n.Effect() == status.EffectDone:
		return "has taken effect"
	case n.Waits():
		return "waits"
	}
	return "has begun"
}

// removed decides about a step that the new definition does not have.
func (c *comparison) removed(s *Step, n *model.Node) {
	switch {
	case c.open(n):
		c.inFlight(s, "the new definition does not have the step")
	case n.State != status.StepSkipped && !untouched(n) && !harmless(n) || n.Clearing:
		c.refuse(s.Name, "keep the step; if it only has another name, write a moved block",
			"step %s %s, and the new definition does not have it", s.Name, progress(n))
	}
}

// dependencies refuses the move if a step has begun and, in the new definition, depends on another
// step that has not ended well. The first step would continue without waiting for the other step.
func (c *comparison) dependencies(s *Step, n *model.Node) {
	if untouched(n) || s.Anew || n.State == status.StepSkipped {
		return
	}
	for _, i := range c.plan.Flow.Steps[s.Node].After {
		if i >= len(c.nodes) || !c.nodes[i].Well() {
			c.refuse(s.Name, "let the new step depend on it, instead", "step %s %s, and in the new definition it depends on step %s, which has not ended",
				s.Name, progress(n), c.plan.Flow.Steps[i].Name)
		}
	}
}

// result refuses the move if the recorded result of a step does not fit the action of the new
// definition.
func (c *comparison) result(s *Step, n *model.Node) {
	c.fits(c.plan.Flow.Steps[s.Node], n)
}

// fits refuses the move or the restart if the recorded result of a step does not fit the action of
// the step.
func (c *comparison) fits(step *dsl.Step, n *model.Node) {
	check := step.Do.Stated
	if check == nil {
		check = step.Do.Output
	}
	if check == nil || !step.Calls() {
		return
	}
	kept := []*model.Node{n}
	if n.Expanded {
		kept = c.nodes[n.First : n.First+n.Count]
	}
	for _, n := range kept {
		if n.State != status.StepSucceeded || !n.Known {
			continue
		}
		is, err := check(n.Output.V.JSON())
		if err != nil {
			c.refuse(step.Name, "use a version of the agent whose output has the same type", "the result of step %s does not fit the new definition: %s", step.Name, err)
			return
		}
		if !c.secretResult(step.Name, n.Output.V, is) {
			return
		}
	}
}

// pivot refuses the move if the new definition has another pivot, and the old or the new pivot step
// has begun.
func (c *comparison) pivot() {
	was, is := c.now.Pivot, c.plan.Flow.Pivot
	if was == is {
		return
	}
	begun := c.run.Passed
	for _, i := range []int{was, is} {
		begun = begun || i >= 0 && i < len(c.nodes) && !untouched(c.nodes[i])
	}
	if begun {
		c.refuse("", "leave the pivot at its step", "the pivot is another step in the new definition, and the run has come to the pivot already")
	}
}

// variables sets the field Vars of the plan: the run's values for the variables of the new
// definition.
func (c *comparison) variables() {
	if len(c.next.Variables) == 0 { // no expression can read a variable
		c.plan.Vars = c.run.Vars.V
		return
	}
	vars, diags := aspect.Rebind(c.next, c.run.Vars.V)
	for _, d := range diags {
		if d.Severity == diag.SeverityError {
			c.refuse("", "give a new variable a default; leave the type of an old one as it was", "the variables of the run do not fit the new definition: %s", strings.TrimSuffix(d.Summary+": "+d.Detail, "."))
		}
	}
	c.plan.Vars = vars
	c.secretVariables()
}
