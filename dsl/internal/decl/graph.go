package decl

import (
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/graph"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A graphDecoder compiles the expressions of a module, and orders the steps of each workflow by
// their dependencies.
type graphDecoder struct {
	*decoder
	refs referenceDecoder
}

// resolve compiles every expression of the module and orders the steps of each workflow.
func (d graphDecoder) resolve() {
	fileNames := &names{variables: d.m.Variables, locals: d.m.locals}
	for _, n := range sorted.Keys(d.m.locals) {
		d.refs.local(d.m.locals[n], fileNames)
	}
	for _, l := range d.m.ownLocals {
		d.refs.local(l, fileNames)
	}
	for _, v := range d.m.TwinVariables {
		d.validations(v, fileNames)
	}
	for _, n := range sorted.Keys(d.m.Variables) {
		d.validations(d.m.Variables[n], fileNames)
	}
	for _, n := range sorted.Keys(d.m.Agents) {
		d.resolveAgent(d.m.Agents[n], fileNames)
	}
	for _, a := range d.m.TwinAgents {
		d.resolveAgent(a, fileNames)
	}
	childDecoder{d.decoder}.resolve()
	for _, w := range d.m.Workflows {
		d.resolveWorkflow(w)
		d.impliedAgents(w)
	}
}

func (d graphDecoder) resolveAgent(a *Agent, ns *names) {
	d.limits(a)
	for _, arg := range a.Config {
		d.refs.compile(arg.Expr, ns, allowVar|allowLocal|allowSecret)
	}
	actionDecoder{d.decoder}.resolve(a, d.refs)
}

// impliedAgents adds to the module each agent that an action in the workflow w names, if the module
// does not have the agent yet. Such an agent comes from a library, or it has no agent block.
func (d graphDecoder) impliedAgents(w *Workflow) {
	use := func(name string, at hcl.Range) {
		switch {
		case name == "" || d.m.Agents[name] != nil:
		case fromLibrary(name):
			libraryDecoder{d.decoder}.agent(name, at)
		default:
			a := d.agent(&syntax.Block{Kind: "agent", Label: name, DefRange: at, Attrs: map[string]*eval.Expr{}})
			a.Implied, a.Block = true, nil
			d.m.Agents[name] = a
		}
	}
	for _, s := range w.Steps {
		use(s.Agent, s.ActionAt)
		if s.Undo != nil {
			use(s.Undo.Agent, s.Undo.ActionAt)
		}
	}
	for _, n := range w.Notifies {
		use(n.Flow.Steps[0].Agent, n.Flow.Steps[0].ActionAt)
	}
}

func (d graphDecoder) validations(v *Variable, ns *names) {
	for _, c := range v.Validations {
		d.refs.compile(c.Condition, ns, allowVar|allowLocal)
		d.refs.compile(c.Message, ns, allowVar|allowLocal)
	}
}

func (w *Workflow) names() *names {
	return &names{variables: w.Variables, locals: w.Locals, steps: w.Steps, index: w.Index, of: w}
}

func (d graphDecoder) resolveWorkflow(w *Workflow) {
	ns := w.names()
	for _, l := range w.OwnLocals {
		d.refs.local(l, ns)
	}
	for _, n := range sorted.Keys(w.Variables) {
		if v := w.Variables[n]; !v.Deployment {
			d.validations(v, ns)
		}
	}
	for _, v := range w.TwinVariables {
		d.validations(v, ns)
	}
	d.refs.compile(w.Deadline, ns, allowRunLevel)
	d.refs.compile(w.CompensationDeadline, ns, allowRunLevel)
	d.refs.compile(w.Unique, ns, allowVar|allowLocal|allowRun)
	d.refs.compile(w.Priority, ns, allowVar|allowLocal)
	d.resolveConcurrency(w, ns)
	for _, a := range w.Admits {
		d.refs.compile(a.Args, ns, allowVar|allowLocal|allowRun)
		d.refs.compile(a.Message, ns, allowVar|allowLocal|allowRun)
	}
	for _, n := range sorted.Keys(AttrsOf(w.Retry)) {
		d.refs.compile(w.Retry.Attrs[n], ns, allowRunLevel)
	}
	for _, s := range w.Steps {
		d.resolveStep(w, s, ns)
	}
	for _, o := range w.Outputs {
		d.refs.compile(o.Value, ns, allowForward)
	}
	for _, n := range w.Notifies {
		d.resolveNotify(n, ns)
	}
	for _, e := range w.OnEvents {
		d.refs.compile(e.When, ns, allowEvent)
		d.refs.compile(e.ForEach, ns, allowEvent)
		d.refs.compile(e.Args, ns, allowEvent)
		d.refs.compile(e.Key, ns, allowEvent)
		own, a := *ns, allowEvent
		if e.ForEach != nil {
			own.hasEach, a = true, allowEvent|allowEach
		}
		d.refs.compile(e.Variables, &own, a)
	}
	d.pivotEdges(w, d.sortSteps(w))
	for _, s := range w.Steps {
		d.resolveUndo(w, s, ns)
	}
}

// resolveConcurrency compiles the expressions of a concurrency block. The concurrency block of a
// group is evaluated when the group starts. So its expressions may also use each.* of the group,
// and the steps outside of the group. They may not use the steps inside of the group.
func (d graphDecoder) resolveConcurrency(w *Workflow, ns *names) {
	a := allowVar | allowLocal
	if w.Outer != nil {
		a |= allowEach | allowAround
	}
	d.refs.compile(w.Concurrency.Attr("limit"), ns, a)
	d.refs.compile(w.Concurrency.Attr("key"), ns, a)
}

// resolveNotify compiles the expressions of a notify block. The parameter `ns` holds the names to
// which the expressions of the workflow can refer.
func (d graphDecoder) resolveNotify(n *Notify, ns *names) {
	own := *ns
	own.inNotify = true
	s := n.Flow.Steps[0]
	d.refs.compile(s.Attr("timeout"), &own, allowRunLevel|allowRunStatus|allowFailure)
	retry := AttrsOf(s.Block.One("retry"))
	for _, name := range sorted.Keys(retry) {
		d.refs.compile(retry[name], &own, allowRunLevel|allowRunStatus|allowFailure)
	}
	for _, a := range s.Input {
		d.refs.compile(a.Expr, &own, allowRunLevel|allowRunStatus|allowFailure|allowSecret)
	}
}

// AttrsOf returns the attributes of a block by name. It returns nil if b is nil.
func AttrsOf(b *syntax.Block) map[string]*eval.Expr {
	if b == nil {
		return nil
	}
	return b.Attrs
}

// resolveStep compiles the expressions of a step, except the expressions of its undo. Every step
// to which these expressions refer becomes a dependency of s.
func (d graphDecoder) resolveStep(w *Workflow, s *Step, ns *names) {
	whole := *ns
	inst := *ns
	inst.hasEach = s.Each()
	d.resolveGroup(s)
	childDecoder{d.decoder}.secrets(s)
	use := func(e *eval.Expr, ns *names, a allow) {
		if c := d.refs.compile(e, ns, a); c != nil {
			for _, i := range c.Steps {
				d.depend(s, i, w, c, e)
			}
		}
	}
	for _, name := range []string{"for_each", "max_parallel", "max_failures", "timeout", "deadline", "heartbeat_timeout", "priority"} {
		use(s.Attr(name), &whole, allowForward)
	}
	for _, n := range sorted.Keys(AttrsOf(s.Block.One("retry"))) {
		use(s.Block.One("retry").Attrs[n], &whole, allowForward)
	}
	use(s.Repeat.Attr("max_iterations"), &whole, allowForward)
	perInstance := allowForward | allowEach
	s.resolveRepeat(func(name string, b *syntax.Block, a allow) { use(b.Attr(name), &inst, a) })
	use(s.Attr("idempotency_key"), &inst, perInstance)
	perInstance |= s.loopReferences()
	use(s.Attr("when"), &inst, perInstance)
	use(s.Attr("value"), &inst, perInstance)
	for _, b := range []*syntax.Block{s.Block.One("timer"), s.Block.One("wait")} {
		for _, name := range []string{"duration", "until", "signal"} {
			use(b.Attr(name), &inst, perInstance)
		}
	}
	for _, a := range s.Input {
		use(a.Expr, &inst, perInstance|allowSecret)
	}
	if s.Child != nil {
		for _, a := range s.Child.Passed {
			use(a.Expr, &inst, perInstance)
		}
	}
	for _, c := range s.Pre {
		use(c.Condition, &inst, perInstance)
		use(c.Message, &inst, perInstance)
		use(c.Code, &inst, perInstance)
	}
	for _, c := range s.FailWhen {
		use(c.Condition.Condition, &inst, perInstance|allowSelf)
		use(c.Message, &inst, perInstance|allowSelf)
		use(c.Code, &inst, perInstance|allowSelf)
	}
	for _, c := range s.Post {
		use(c.Condition, &inst, perInstance|allowSelf)
		use(c.Message, &inst, perInstance|allowSelf)
		use(c.Code, &inst, perInstance|allowSelf)
	}
	if s.Catch != nil {
		use(s.Catch.Attr("errors"), &inst, allowForward|allowEach)
		use(s.Catch.Attr("output"), &inst, allowForward|allowEach|allowError)
	}
	d.dependsOn(w, s)
}

func (d graphDecoder) depend(s *Step, on int, w *Workflow, c *eval.Compiled, e *eval.Expr) {
	at, direct := c.StepRefs[on]
	if !direct {
		at = e.Range
	}
	if w.Steps[on].Name == s.Name { // the step s, or another step with the same name
		e.Bad = true
		d.Errorf(at, "Step refers to itself", "Step %q cannot use its own result here. In fail_when, postcondition and compensate it is self.output.", s.Name)
		return
	}
	if _, known := s.After[on]; !known {
		s.After[on] = at
	}
}

// resolveGroup resolves the references in the workflow of a group. In this way it finds the values
// that the group takes from outside of the group. Then it sets s.Child.Passed to these values and
// the variables of the module. If s starts no group, resolveGroup does nothing.
func (d graphDecoder) resolveGroup(s *Step) {
	if s.Child == nil || !s.Child.Group || s.Child.Workflow == nil {
		return
	}
	inner := s.Child.Workflow
	groupDecoder{d.decoder}.settings(inner)
	d.resolveWorkflow(inner)
	d.impliedAgents(inner)
	s.Child.Passed = inner.passed(d.m.Variables)
}

// dependsOn reads depends_on of a step: a list of references such as step.NAME, without keys of
// instances. It adds the named steps to s.After and s.dependsOn. For a step outside of the group w,
// it calls dependsAround instead.
func (d graphDecoder) dependsOn(w *Workflow, s *Step) {
	e := s.Attr("depends_on")
	if e == nil || e.Bad {
		return
	}
	items, ok := e.Elements()
	if !ok {
		d.Errorf(e.Range, "Invalid depends_on", "depends_on is a list of steps: depends_on = [step.NAME].")
		return
	}
	for _, item := range items {
		t := item.Traversal()
		if len(t) < 2 || t.RootName() != "step" && t.RootName() != "group" {
			d.Errorf(item.Range, "Invalid depends_on", "depends_on is a list of steps: depends_on = [step.NAME].")
			continue
		}
		attr, ok := t[1].(hcl.TraverseAttr)
		if !ok || len(t) > 2 {
			d.Errorf(item.Range, "Invalid depends_on", "depends_on takes whole steps only: write step.NAME, without a key or an output.")
			continue
		}
		i, ok := w.Index[attr.Name]
		if !ok && d.dependsAround(w, attr.Name, item.Range) {
			continue
		}
		if !ok {
			d.Errorf(item.Range, "Reference to undeclared step", "There is no step named %q in this workflow.%s%s",
				attr.Name, diag.DidYouMean(attr.Name, sorted.Keys(w.Index)), w.hint(attr.Name))
			continue
		}
		if !d.refs.kindOf(t, w.Steps[i]) {
			continue
		}
		if attr.Name == s.Name {
			d.Errorf(item.Range, "Step refers to itself", "Step %q cannot depend on itself.", s.Name)
			continue
		}
		if _, known := s.After[i]; !known {
			s.After[i] = item.Range
		}
		s.dependsOn = append(s.dependsOn, i)
	}
}

// dependsAround handles a name in depends_on of a step in the group w. It looks for a step with
// this name in the workflow that contains w, then in the workflow that contains that one, and so
// on. The workflow that has the step also has a group, which is w or contains w. dependsAround
// makes this group wait for the step. If the name is the name of this group itself, it reports an
// error. It returns false if no workflow has such a step.
func (d graphDecoder) dependsAround(w *Workflow, name string, at hcl.Range) bool {
	if w.Outer == nil {
		return false
	}
	i, ok := w.Outer.Index[name]
	if !ok {
		return d.dependsAround(w.Outer, name, at)
	}
	if w.Holder.Name == name {
		d.Errorf(at, "Group refers to itself", "A step of group %q cannot depend on the group, because the group ends after its steps.", name)
		return true
	}
	if _, known := w.Holder.After[i]; !known {
		w.Holder.After[i] = at
	}
	return true
}

// graph returns the dependencies of the steps. A node of the graph is the index of a step.
func (w *Workflow) graph() graph.Graph {
	return graph.Graph{Nodes: len(w.Steps), After: func(i int) iter.Seq[int] { return maps.Keys(w.Steps[i].After) }}
}

// sortSteps sorts the steps topologically: it sets w.Order and returns true. If the steps have a
// cycle, it reports the cycle, sets w.Order to nil and returns false.
func (d graphDecoder) sortSteps(w *Workflow) bool {
	order, cycle := w.graph().Sort()
	w.Order = order
	if cycle != nil {
		d.reportCycle(w, cycle)
	}
	return cycle == nil
}

// reportCycle reports a cycle of steps. In the list `path`, each step waits for the next step of
// the list. The first step is also the last one.
func (d graphDecoder) reportCycle(w *Workflow, path []int) {
	var text []string
	// The message shows the list in reverse order.
	for i := len(path) - 1; i >= 0; i-- {
		text = append(text, fmt.Sprintf("%q", w.Steps[path[i]].Name))
	}
	var why []string
	for i := 0; i+1 < len(path); i++ {
		a, b := w.Steps[path[i]], w.Steps[path[i+1]]
		why = append(why, fmt.Sprintf("%q waits for %q (%s)", a.Name, b.Name, report.Range(a.After[b.Index])))
	}
	first := w.Steps[path[0]]
	d.Errorf(first.After[path[1]], "Cycle in steps", "Steps wait for each other: %s.\n%s.",
		strings.Join(text, " → "), strings.Join(why, ", "))
}

// pivotEdges makes the pivot wait for every step that does not wait for the pivot. So no step runs
// at the same time as the pivot. pivotEdges reports an error if w has more than one pivot. The
// parameter `sorted` is false if the steps have a cycle; then pivotEdges adds no dependencies.
func (d graphDecoder) pivotEdges(w *Workflow, sorted bool) {
	pivot := -1
	for i, s := range w.Steps {
		if !s.Pivot {
			continue
		}
		if pivot >= 0 {
			d.Errorf(s.pivotAt(), "More than one pivot", "Step %q is the pivot already. A workflow has one point of no return at most.", w.Steps[pivot].Name)
			s.Pivot = false
			continue
		}
		pivot = i
	}
	if pivot < 0 || !sorted {
		return
	}
	p := w.Steps[pivot]
	later := w.Downstream(pivot)
	covered := w.upstream(pivot)
	// If the pivot gets a dependency on a step, the pivot also waits for all steps for which this
	// step waits. So the loop begins with the last step: then few new dependencies are enough.
	for k := len(w.Order) - 1; k >= 0; k-- {
		i := w.Order[k]
		if i != pivot && !later[i] && !covered[i] {
			p.After[i] = p.pivotAt()
			covered[i] = true
			for a := range w.upstream(i) {
				covered[a] = true
			}
		}
	}
	d.sortSteps(w)
}

// Downstream returns the indexes of the steps that wait for step i, directly or through other
// steps. It returns an empty map if w.Order is nil.
func (w *Workflow) Downstream(i int) map[int]bool { return w.graph().Downstream(w.Order, i) }

// upstream returns the indexes of the steps for which step i waits, directly or through other
// steps.
func (w *Workflow) upstream(i int) map[int]bool { return w.graph().Upstream(i) }

// maybeUpstream reports whether the parameter `up` may lack steps for which step s waits. The
// parameter `up` is the result of the method `upstream` for s. It may lack steps only if the steps
// of w have a cycle, because then pivotEdges has added no dependencies to the pivot. In this case,
// maybeUpstream returns true if s is the pivot or waits for the pivot.
func (w *Workflow) maybeUpstream(s *Step, up map[int]bool) bool {
	if w.Order != nil {
		return false
	}
	for i, p := range w.Steps {
		if p.Pivot && (i == s.Index || up[i]) {
			return true
		}
	}
	return false
}

func (w *Workflow) waitsFor(i, on int) bool { return w.upstream(i)[on] }

// resolveUndo compiles the compensate block of a step. The block may only use the results of steps
// that certainly run before this step. The references in the block do not become dependencies.
func (d graphDecoder) resolveUndo(w *Workflow, s *Step, ns *names) {
	u := s.Undo
	if u == nil {
		return
	}
	inst := *ns
	inst.hasEach = s.Each()
	var up map[int]bool
	check := func(e *eval.Expr, a allow) {
		c := d.refs.compile(e, &inst, a)
		if c == nil {
			return
		}
		if up == nil {
			up = w.upstream(s.Index)
		}
		for _, i := range c.Steps {
			if w.Steps[i].Name == s.Name || !up[i] && !w.maybeUpstream(s, up) {
				e.Bad = true
				d.undoReference(w, s, i, c, e)
			}
		}
	}
	for _, a := range u.Input {
		check(a.Expr, allowForward|allowEach|allowSelf|allowFailure|allowSecret|s.loopReferences())
	}
	for _, name := range []string{"timeout", "deadline"} {
		check(u.Block.Attr(name), allowForward|allowFailure)
	}
	for _, n := range sorted.Keys(AttrsOf(u.Block.One("retry"))) {
		check(u.Block.One("retry").Attrs[n], allowForward|allowFailure)
	}
}

func (d graphDecoder) undoReference(w *Workflow, s *Step, other int, c *eval.Compiled, e *eval.Expr) {
	at, direct := c.StepRefs[other]
	if !direct {
		at = e.Range
	}
	name := w.Steps[other].Name
	if name == s.Name {
		d.Errorf(at, "Undo refers to its own step", "In the undo of step %q its result is self.output, its arguments are self.input.", name)
		return
	}
	relation := "does not run before"
	if w.waitsFor(other, s.Index) {
		relation = "runs after"
	}
	d.Errorf(at, "Undo refers to a step that may not have run",
		"%q %s %q. Undo may use self, failure, var, local and earlier steps only.", name, relation, s.Name)
}
