package dsl

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A graphDecoder orders the steps of a workflow by their dependencies.
type graphDecoder struct {
	*decoder
	refs referenceDecoder
}

// resolve compiles every expression of the module and builds the graphs.
func (d graphDecoder) resolve() {
	fileNames := &names{variables: d.m.variables, locals: d.m.locals}
	for _, n := range sorted.Keys(d.m.locals) {
		d.refs.local(d.m.locals[n], fileNames)
	}
	for _, l := range d.m.ownLocals {
		d.refs.local(l, fileNames)
	}
	for _, v := range d.m.twinVariables {
		d.validations(v, fileNames)
	}
	for _, n := range sorted.Keys(d.m.variables) {
		d.validations(d.m.variables[n], fileNames)
	}
	for _, n := range sorted.Keys(d.m.agents) {
		d.resolveAgent(d.m.agents[n], fileNames)
	}
	for _, a := range d.m.twinAgents {
		d.resolveAgent(a, fileNames)
	}
	for _, w := range d.m.workflows {
		d.resolveWorkflow(w)
		d.impliedAgents(w)
	}
}

func (d graphDecoder) resolveAgent(a *agentDecl, ns *names) {
	d.limits(a)
	for _, arg := range a.config {
		d.refs.compile(arg.Expr, ns, allowVar|allowLocal|allowSecret)
	}
}

// impliedAgents adds the agents that are used without a block.
func (d graphDecoder) impliedAgents(w *workflowDecl) {
	use := func(name string, at hcl.Range) {
		if name != "" && d.m.agents[name] == nil {
			a := d.agent(&syntax.Block{Kind: "agent", Label: name, DefRange: at, Attrs: map[string]*eval.Expr{}})
			a.implied, a.block = true, nil
			d.m.agents[name] = a
		}
	}
	for _, s := range w.steps {
		use(s.agent, s.actionAt)
		if s.undo != nil {
			use(s.undo.agent, s.undo.actionAt)
		}
	}
}

func (d graphDecoder) validations(v *variableDecl, ns *names) {
	for _, c := range v.validations {
		d.refs.compile(c.condition, ns, allowVar|allowLocal)
		d.refs.compile(c.message, ns, allowVar|allowLocal)
	}
}

func (w *workflowDecl) names() *names {
	return &names{variables: w.variables, locals: w.locals, steps: w.steps, index: w.index}
}

func (d graphDecoder) resolveWorkflow(w *workflowDecl) {
	ns := w.names()
	for _, l := range w.ownLocals {
		d.refs.local(l, ns)
	}
	for _, n := range sorted.Keys(w.variables) {
		if v := w.variables[n]; !v.deployment {
			d.validations(v, ns)
		}
	}
	for _, v := range w.twinVariables {
		d.validations(v, ns)
	}
	d.refs.compile(w.deadline, ns, allowRunLevel)
	d.refs.compile(w.compDeadline, ns, allowRunLevel)
	d.refs.compile(w.unique, ns, allowVar|allowLocal|allowRun)
	for _, n := range sorted.Keys(attrsOf(w.retry)) {
		d.refs.compile(w.retry.Attrs[n], ns, allowRunLevel)
	}
	for _, s := range w.steps {
		d.resolveStep(w, s, ns)
	}
	for _, o := range w.outputs {
		d.refs.compile(o.value, ns, allowForward)
	}
	d.pivotEdges(w, d.sortSteps(w))
	for _, s := range w.steps {
		d.resolveUndo(w, s, ns)
	}
}

// attrsOf returns the arguments of a block; nil for a block that is not written.
func attrsOf(b *syntax.Block) map[string]*eval.Expr {
	if b == nil {
		return nil
	}
	return b.Attrs
}

// resolveStep compiles the forward part of a step; every step it refers to is
// a dependency.
func (d graphDecoder) resolveStep(w *workflowDecl, s *stepDecl, ns *names) {
	whole := *ns
	inst := *ns
	inst.hasEach = s.each()
	use := func(e *eval.Expr, ns *names, a allow) {
		if c := d.refs.compile(e, ns, a); c != nil {
			for _, i := range c.Steps {
				d.depend(s, i, w, c, e)
			}
		}
	}
	for _, name := range []string{"for_each", "max_parallel", "max_failures", "timeout", "deadline", "heartbeat_timeout"} {
		use(s.attr(name), &whole, allowForward)
	}
	for _, n := range sorted.Keys(attrsOf(s.block.One("retry"))) {
		use(s.block.One("retry").Attrs[n], &whole, allowForward)
	}
	perInstance := allowForward | allowEach
	use(s.attr("when"), &inst, perInstance)
	use(s.attr("idempotency_key"), &inst, perInstance)
	for _, a := range s.input {
		use(a.Expr, &inst, perInstance|allowSecret)
	}
	for _, c := range s.pre {
		use(c.condition, &inst, perInstance)
		use(c.message, &inst, perInstance)
		use(c.code, &inst, perInstance)
	}
	for _, c := range s.post {
		use(c.condition, &inst, perInstance|allowSelf)
		use(c.message, &inst, perInstance|allowSelf)
		use(c.code, &inst, perInstance|allowSelf)
	}
	if s.catch != nil {
		use(s.catch.Attr("errors"), &inst, perInstance)
		use(s.catch.Attr("output"), &inst, perInstance)
	}
	d.dependsOn(w, s)
}

func (d graphDecoder) depend(s *stepDecl, on int, w *workflowDecl, c *eval.Compiled, e *eval.Expr) {
	at, direct := c.Direct[on]
	if !direct {
		at = e.Range
	}
	if w.steps[on].name == s.name { // or to the one whose name it took
		e.Bad = true
		d.Errorf(at, "Step refers to itself", "Step %q cannot use its own result here. In postcondition and compensate it is self.output.", s.name)
		return
	}
	if _, known := s.after[on]; !known {
		s.after[on] = at
	}
}

// dependsOn reads depends_on: a list of whole steps.
func (d graphDecoder) dependsOn(w *workflowDecl, s *stepDecl) {
	e := s.attr("depends_on")
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
		if len(t) < 2 || t.RootName() != "step" {
			d.Errorf(item.Range, "Invalid depends_on", "depends_on is a list of steps: depends_on = [step.NAME].")
			continue
		}
		attr, ok := t[1].(hcl.TraverseAttr)
		if !ok || len(t) > 2 {
			d.Errorf(item.Range, "Invalid depends_on", "depends_on takes whole steps only: write step.NAME, without a key or an output.")
			continue
		}
		i, ok := w.index[attr.Name]
		if !ok {
			d.Errorf(item.Range, "Reference to undeclared step", "There is no step named %q in this workflow.%s",
				attr.Name, diag.DidYouMean(attr.Name, sorted.Keys(w.index)))
			continue
		}
		if attr.Name == s.name {
			d.Errorf(item.Range, "Step refers to itself", "Step %q cannot depend on itself.", s.name)
			continue
		}
		if _, known := s.after[i]; !known {
			s.after[i] = item.Range
		}
		s.dependsOn = append(s.dependsOn, i)
	}
}

// sortSteps fills order; it reports cycles and returns false if
// there are any.
func (d graphDecoder) sortSteps(w *workflowDecl) bool {
	w.order = nil
	n := len(w.steps)
	open := make([]int, n)
	before := make([][]int, n)
	for i, s := range w.steps {
		open[i] = len(s.after)
		for on := range s.after {
			before[on] = append(before[on], i)
		}
	}
	var ready intHeap
	for i := range w.steps {
		if open[i] == 0 {
			ready.push(i)
		}
	}
	order := make([]int, 0, n)
	for len(ready) > 0 {
		i := ready.pop()
		order = append(order, i)
		for _, j := range before[i] {
			if open[j]--; open[j] == 0 {
				ready.push(j)
			}
		}
	}
	if len(order) < n {
		d.reportCycle(w, open)
		return false
	}
	w.order = order
	return true
}

// intHeap is a heap of small numbers: ready steps leave it in the order of
// their declaration.
type intHeap []int

func (h *intHeap) push(x int) {
	a := append(*h, x)
	for i := len(a) - 1; i > 0 && a[(i-1)/2] > a[i]; i = (i - 1) / 2 {
		a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
	}
	*h = a
}

func (h *intHeap) pop() int {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(a) {
			break
		}
		if c+1 < len(a) && a[c+1] < a[c] {
			c++
		}
		if a[i] <= a[c] {
			break
		}
		a[i], a[c] = a[c], a[i]
		i = c
	}
	*h = a
	return top
}

// reportCycle walks back from a step that could not be ordered until it meets
// itself.
func (d graphDecoder) reportCycle(w *workflowDecl, open []int) {
	cur := 0
	for i, n := range open {
		if n > 0 {
			cur = i
			break
		}
	}
	back := func(i int) int { // a dependency that is itself blocked
		best := -1
		for on := range w.steps[i].after {
			if open[on] > 0 && (best < 0 || on < best) {
				best = on
			}
		}
		return best
	}
	for range w.steps { // walk until surely inside the cycle
		cur = back(cur)
	}
	path := []int{cur}
	for next := back(cur); ; next = back(next) {
		path = append(path, next)
		if next == cur {
			break
		}
	}
	var text []string
	for i := len(path) - 1; i >= 0; i-- { // from dependency to dependent
		text = append(text, fmt.Sprintf("%q", w.steps[path[i]].name))
	}
	var why []string
	for i := 0; i+1 < len(path); i++ {
		a, b := w.steps[path[i]], w.steps[path[i+1]]
		why = append(why, fmt.Sprintf("%q waits for %q (%s)", a.name, b.name, report.Range(a.after[b.index])))
	}
	first := w.steps[path[0]]
	d.Errorf(first.after[path[1]], "Cycle in steps", "Steps wait for each other: %s.\n%s.",
		strings.Join(text, " → "), strings.Join(why, ", "))
}

// pivotEdges makes the pivot wait for every step that does not wait for it,
// so that no other step runs at the same time.
func (d graphDecoder) pivotEdges(w *workflowDecl, sorted bool) {
	pivot := -1
	for i, s := range w.steps {
		if !s.pivot {
			continue
		}
		if pivot >= 0 {
			d.Errorf(s.block.Attr("pivot").Range, "More than one pivot", "Step %q is the pivot already. A workflow has one point of no return at most.", w.steps[pivot].name)
			s.pivot = false
			continue
		}
		pivot = i
	}
	if pivot < 0 || !sorted {
		return
	}
	p := w.steps[pivot]
	later := w.downstream(pivot)
	covered := w.upstream(pivot)
	for k := len(w.order) - 1; k >= 0; k-- { // last ones first: they cover those before them
		i := w.order[k]
		if i != pivot && !later[i] && !covered[i] {
			p.after[i] = p.block.Attr("pivot").Range
			covered[i] = true
			for a := range w.upstream(i) {
				covered[a] = true
			}
		}
	}
	d.sortSteps(w)
}

// downstream returns the steps that wait for step i, transitively. It needs
// order.
func (w *workflowDecl) downstream(i int) map[int]bool {
	out := map[int]bool{}
	for _, k := range w.order {
		for on := range w.steps[k].after {
			if on == i || out[on] {
				out[k] = true
				break
			}
		}
	}
	return out
}

// upstream returns what step i waits for, transitively.
func (w *workflowDecl) upstream(i int) map[int]bool {
	seen := map[int]bool{}
	stack := []int{i}
	for len(stack) > 0 {
		cur := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for on := range w.steps[cur].after {
			if !seen[on] {
				seen[on] = true
				stack = append(stack, on)
			}
		}
	}
	return seen
}

// maybeUpstream reports whether more steps than up may have to come before s:
// where the steps have a cycle, what a pivot waits for is not known.
func (w *workflowDecl) maybeUpstream(s *stepDecl, up map[int]bool) bool {
	if w.order != nil {
		return false
	}
	for i, p := range w.steps {
		if p.pivot && (i == s.index || up[i]) {
			return true
		}
	}
	return false
}

func (w *workflowDecl) waitsFor(i, on int) bool { return w.upstream(i)[on] }

// resolveUndo compiles the compensate block. It may use the results of steps
// that surely ran before, and is no dependency itself.
func (d graphDecoder) resolveUndo(w *workflowDecl, s *stepDecl, ns *names) {
	u := s.undo
	if u == nil {
		return
	}
	inst := *ns
	inst.hasEach, inst.inUndoOf = s.each(), s.name
	var up map[int]bool
	check := func(e *eval.Expr, a allow) {
		c := d.refs.compile(e, &inst, a)
		if c == nil {
			return
		}
		if up == nil {
			up = w.upstream(s.index)
		}
		for _, i := range c.Steps {
			if w.steps[i].name == s.name || !up[i] && !w.maybeUpstream(s, up) {
				e.Bad = true
				d.undoReference(w, s, i, c, e)
			}
		}
	}
	for _, a := range u.input {
		check(a.Expr, allowForward|allowEach|allowSelf|allowFailure|allowSecret)
	}
	for _, name := range []string{"timeout", "deadline"} {
		check(u.block.Attr(name), allowForward|allowFailure)
	}
	for _, n := range sorted.Keys(attrsOf(u.block.One("retry"))) {
		check(u.block.One("retry").Attrs[n], allowForward|allowFailure)
	}
}

func (d graphDecoder) undoReference(w *workflowDecl, s *stepDecl, other int, c *eval.Compiled, e *eval.Expr) {
	at, direct := c.Direct[other]
	if !direct {
		at = e.Range
	}
	name := w.steps[other].name
	if name == s.name {
		d.Errorf(at, "Undo refers to its own step", "In the undo of step %q its result is self.output, its arguments are self.input.", name)
		return
	}
	relation := "does not run before"
	if w.waitsFor(other, s.index) {
		relation = "runs after"
	}
	d.Errorf(at, "Undo refers to a step that may not have run",
		"%q %s %q. Undo may use self, failure, var, local and earlier steps only.", name, relation, s.name)
}
