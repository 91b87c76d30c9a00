package decl

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A referenceDecoder compiles expressions. It finds the references in an expression. It reports
// an error for a reference that is not allowed in its position.
type referenceDecoder struct {
	*decoder
	visits map[*eval.Local]visit // state of each local in the search for cycles
}

// A visit says how far a depth-first search through the locals has come with one local.
type visit uint8

const (
	unseen   visit = iota // the search has not reached the local
	active                // the search is inside of the local; if it reaches the local again, there is a cycle
	finished              // the local is compiled
)

// allow is a set of bits. Each bit allows one kind of reference in an expression.
type allow uint16

const (
	allowVar allow = 1 << iota
	allowLocal
	allowStep
	allowEach
	allowSelf
	allowFailure
	allowRun
	allowRunKey
	allowSecret
	allowArgs
	allowPrevious
	allowCollected
	allowRunStatus
	allowEvent
	allowAround // steps outside of the group that has the expression, but no steps of this group
	allowError  // self.error, but no other attribute of self
)

const (
	allowRunLevel = allowVar | allowLocal | allowRun | allowRunKey
	allowForward  = allowRunLevel | allowStep
)

// names holds the names to which the expressions at one position in the source can refer.
type names struct {
	variables map[string]*Variable
	locals    map[string]*eval.Local
	steps     []*Step        // steps of the workflow; nil outside of workflows
	index     map[string]int // indexes in the field `steps`, by name of the step; nil outside of workflows
	of        *Workflow      // workflow or group that contains the expressions; nil outside of workflows
	hasEach   bool           // true = the expressions are inside of a step or an on_event block with for_each
	arguments []string       // names of the arguments to which args.NAME may refer
	onlySelf  string         // the only attribute of self that the expressions may use; "" = all attributes
	inNotify  bool           // true = the expressions are inside of a notify block
	// true = the expression is a line of the console. Such an expression can use only those values
	// from outside of a group that the group has taken already.
	inLine bool
}

// compile compiles the expression e and checks each of its references. The parameter `a` says which
// references are allowed. The method `compile` returns nil if e is nil. After an error it sets
// e.Bad.
func (d referenceDecoder) compile(e *eval.Expr, ns *names, a allow) *eval.Compiled {
	if e == nil {
		return nil
	}
	if e.Compiled != nil {
		return e.Compiled
	}
	c := &eval.Compiled{Syntax: e.Syntax, StepRefs: map[int]hcl.Range{}}
	e.Compiled = c
	locals := map[string]*eval.Local{}
	for _, t := range e.Syntax.Variables() { // check the references even if the expression has another error
		if d.reference(c, t, ns, a, locals) {
			c.Refs = append(c.Refs, t)
		} else {
			e.Bad = true
		}
	}
	if !d.secretCalls(c, a) || !d.stepStars(c, ns) {
		e.Bad = true
	}
	for _, n := range sorted.Keys(locals) {
		c.Locals = append(c.Locals, locals[n])
	}
	all := map[int]bool{}
	for i := range c.StepRefs {
		all[i] = true
	}
	for _, l := range c.Locals { // the loop over all references has already compiled these locals
		if l.Expr.Bad {
			e.Bad = true
		}
		if lc := l.Expr.Compiled; lc != nil {
			for _, i := range lc.Steps {
				all[i] = true
			}
		}
	}
	for i := range all {
		c.Steps = append(c.Steps, i)
	}
	sort.Ints(c.Steps)
	for i := range c.StepRefs {
		c.Named = append(c.Named, i)
	}
	sort.Ints(c.Named)
	c.Metered = metered.Of(e.Syntax)
	d.fold(e, c)
	return c
}

// fold evaluates the expression e and sets c.Constant to its value. It does nothing if e has
// references, calls secret() or has an error. If the evaluation fails, fold reports the error and
// sets e.Bad.
func (d referenceDecoder) fold(e *eval.Expr, c *eval.Compiled) {
	if e.Bad || c.Secrets || len(e.Syntax.Variables()) > 0 {
		return
	}
	v, diags := metered.Evaluate(c.Metered, metered.ConstantContext(d.m.Funcs, d.Allowance()))
	d.HCL(diags)
	if diags.HasErrors() {
		e.Bad = true
		return
	}
	c.Constant = &v
}

// reference checks the reference t and adds it to c. If t refers to a local, the method also adds
// the local to the map `locals`. If t is not allowed, the method reports an error and returns
// false.
func (d referenceDecoder) reference(c *eval.Compiled, t hcl.Traversal, ns *names, a allow, locals map[string]*eval.Local) bool {
	rng := t.SourceRange()
	root := t.RootName()
	name := ""
	if len(t) > 1 {
		name = eval.NameOf(t[1])
	}
	named := name != ""
	if !named && (slices.Contains([]string{"var", "local", "step", "group", "args"}, root) || syntax.RootFields[root] != nil) {
		d.Errorf(rng, "Invalid reference", "%q is not a value; write %s.NAME.", root, root)
		return false
	}
	if named {
		if ok, handled := d.around(c, t, name, ns, a); handled {
			return ok
		}
	}
	if a&allowEvent != 0 && !d.inEvent(root, rng, a) {
		return false
	}
	switch root {
	case "var":
		c.Vars = true
		return d.refVar(name, rng, ns, a)
	case "local":
		l, ok := ns.locals[name]
		switch {
		case a&allowLocal == 0:
			d.unavailable(rng, "local")
			return false
		case !ok:
			d.Errorf(rng, "Reference to undeclared local value", "There is no local value named %q.%s",
				name, diag.DidYouMean(name, sorted.Keys(ns.locals)))
			return false
		}
		locals[name] = l
		return d.refLocal(l, rng, ns, a, c)
	case "step", "group":
		return d.refStep(c, t, name, rng, ns, a)
	case "each", "self", "failure", "run", "event":
		return d.refField(c, root, name, rng, ns, a)
	case "args":
		return d.refArgument(c, name, rng, ns, a)
	case "agent":
		d.Errorf(rng, "Invalid reference", "An agent's action is not a value; it can stand only in action = agent.NAME.ACTION.")
	case "library":
		d.Errorf(rng, "Invalid reference", "An agent of a library is not a value; it can stand only in action = library.LIBRARY.agent.NAME.ACTION.")
	case "workflow":
		d.Errorf(rng, "Invalid reference", "A workflow is not a value.")
	default:
		d.unknownRoot(root, t, ns)
	}
	return false
}

// inEvent checks a reference in an on_event or reset_on block. The parameter `root` is the first
// name of the reference. No run exists yet, so inEvent reports an error and returns false for a
// name such as `step` or `run`. It also reports an error and returns false for the name `each`,
// unless the parameter `a` contains allowEach.
func (d referenceDecoder) inEvent(root string, at hcl.Range, a allow) bool {
	switch {
	case root == "each" && a&allowEach == 0:
		d.Errorf(at, "Reference not available here", "each can be used only in the variables of an on_event block with for_each.")
	case slices.Contains([]string{"var", "local", "step", "group", "run"}, root):
		d.Errorf(at, "Reference not available here", "In on_event and reset_on only event can be used, because there is no run yet: event.data, event.type, event.id and event.at.")
	default:
		return true
	}
	return false
}

func (d referenceDecoder) unknownRoot(root string, t hcl.Traversal, ns *names) {
	hint := ""
	switch {
	case ns.index != nil && has(ns.index, root):
		hint = fmt.Sprintf(" Did you mean \"step.%s\"?", root)
	case has(ns.variables, root):
		hint = fmt.Sprintf(" Did you mean \"var.%s\"?", root)
	case has(ns.locals, root):
		hint = fmt.Sprintf(" Did you mean \"local.%s\"?", root)
	default:
		hint = diag.DidYouMean(root, []string{"var", "local", "step", "group", "each", "self", "failure", "run", "event"})
	}
	if len(t) == 1 && hint == "" {
		hint = fmt.Sprintf(" A string is written in quotes: %q.", root)
	}
	d.Errorf(t.SourceRange(), "Unknown reference", "There is nothing named %q here.%s", root, hint)
}

func has[V any](m map[string]V, k string) bool { _, ok := m[k]; return ok }

func (d referenceDecoder) refVar(name string, at hcl.Range, ns *names, a allow) bool {
	if a&allowVar == 0 {
		d.unavailable(at, "var")
		return false
	}
	if has(ns.variables, name) {
		return true
	}
	hint := diag.DidYouMean(name, sorted.Keys(ns.variables))
	if hint == "" && ns.steps == nil && ns.index == nil {
		hint = " Only variables declared at the top of a file can be used here, not those of a workflow."
	}
	d.Errorf(at, "Reference to undeclared variable", "There is no variable named %q.%s", name, hint)
	return false
}

// refLocal checks a reference to a local. If the local uses steps, steps must also be allowed at
// the position of the reference. After an error refLocal returns false.
func (d referenceDecoder) refLocal(l *eval.Local, at hcl.Range, ns *names, a allow, c *eval.Compiled) bool {
	lc := d.local(l, ns)
	if lc == nil {
		return false // the local is part of a cycle, and the cycle was reported
	}
	if len(lc.Steps) > 0 && ns.inNotify {
		d.stepInNotify(at, "local."+l.Name+" uses step."+ns.steps[lc.Steps[0]].Name+". ")
		return false
	}
	if len(lc.Steps) > 0 && a&allowStep == 0 {
		d.Errorf(at, "Reference not available here", "local.%s uses step.%s, which is not available here.",
			l.Name, ns.steps[lc.Steps[0]].Name)
		return false
	}
	c.Vars = c.Vars || lc.Vars
	c.Run = c.Run || lc.Run
	c.GroupKeys |= lc.GroupKeys
	return true
}

// refStep checks a reference step.NAME, with its key and its attribute. After an error it returns
// false.
func (d referenceDecoder) refStep(c *eval.Compiled, t hcl.Traversal, name string, at hcl.Range, ns *names, a allow) bool {
	if ns.inNotify {
		d.stepInNotify(at, "")
		return false
	}
	word := t.RootName()
	if a&(allowStep|allowAround) == 0 {
		d.unavailable(at, word)
		return false
	}
	i, ok := ns.index[name]
	if !ok {
		d.Errorf(at, "Reference to undeclared "+word, "There is no %s named %q in this workflow.%s%s",
			word, name, diag.DidYouMean(name, sorted.Keys(ns.index)), ns.of.hint(name))
		return false
	}
	if a&allowAround != 0 {
		d.Errorf(at, "Reference not available here",
			"The concurrency of a group is decided before its steps start. So it can use var, local, each, and steps around the group, but no step of the group.")
		return false
	}
	if !d.kindOf(t, ns.steps[i]) {
		return false
	}
	if _, seen := c.StepRefs[i]; !seen {
		c.StepRefs[i] = at
	}
	s := ns.steps[i]
	field := 2
	if s.Each() {
		if len(t) > 2 {
			if attr, ok := t[2].(hcl.TraverseAttr); ok && slices.Contains(syntax.StepFields, attr.Name) {
				d.Errorf(at, "Missing key of step", "%s has for_each: %s.%s is a map with one entry a key. Write %s.%s[KEY].%s.",
					s.Title(), word, name, word, name, attr.Name)
				return false
			}
		}
		field = 3
	} else if len(t) > 2 {
		if _, ok := t[2].(hcl.TraverseIndex); ok {
			d.Errorf(at, "Step without instances", "%s has no for_each, so it has no key. Write %s.%s.output.NAME.", s.Title(), word, name)
			return false
		}
	}
	if len(t) > field {
		fields := syntax.StepFields
		if word == "group" {
			fields = syntax.GroupFields
		}
		if attr, ok := t[field].(hcl.TraverseAttr); ok && !slices.Contains(fields, attr.Name) {
			hint := diag.DidYouMean(attr.Name, fields)
			if hint == "" {
				hint = fmt.Sprintf(" Results are under output: %s.%s%s.output.%s.", word, name, instanceKey(s), attr.Name)
			}
			d.Errorf(t.SourceRange(), "Unsupported attribute", "A %s has no attribute %q.%s", word, attr.Name, hint)
			return false
		} else if ok && attr.Name == "collected" && !s.Collects() {
			d.Errorf(t.SourceRange(), "Nothing is collected", "Step %q has no repeat block with collect = ..., so it collects no values.", name)
			return false
		}
	}
	if word == "group" {
		rename(t, "step", name)
	}
	return true
}

// kindOf checks the first word of t, which is a reference to s. The word must be `group` if s is a
// group, and otherwise `step`. If the word is wrong, kindOf reports an error and returns false.
func (d referenceDecoder) kindOf(t hcl.Traversal, s *Step) bool {
	group := s.Child != nil && s.Child.Group
	switch root := t.RootName(); {
	case group && root == "step":
		d.Errorf(t.SourceRange(), "Reference to a group", "%q is a group: write group.%s%s.output.NAME, or group.%s in depends_on.", s.Name, s.Name, instanceKey(s), s.Name)
	case !group && root == "group":
		d.Errorf(t.SourceRange(), "Reference to a step", "%q is a step: write step.%s.", s.Name, s.Name)
	default:
		return true
	}
	return false
}

// stepStars reports an error for each [*] and .* directly after a step or group with for_each.
// These operators take lists, and such a step is a map. stepStars returns false after an error.
func (d referenceDecoder) stepStars(c *eval.Compiled, ns *names) bool {
	if d.m.Older {
		// No error: a stored definition stays valid. In it, try() or can() may contain such an
		// operator.
		return true
	}
	ok := true
	for _, s := range stars(c.Syntax) {
		if i, known := ns.index[s.step]; known && ns.steps[i].Each() {
			ok = false
			word, summary := "step", "Step is a map"
			if c := ns.steps[i].Child; c != nil && c.Group {
				word, summary = "group", "Group is a map"
			}
			d.Errorf(s.where, summary, "%s has for_each: %s.%s is a map with one entry a key, and * takes a list. Write [for k, s in %s.%s : s%s], or values(%s.%s)[*]%s.",
				ns.steps[i].Title(), word, s.step, word, s.step, s.rest, word, s.step, s.rest)
		}
	}
	return ok
}

// instanceKey returns the text that follows the name of a step in a reference: "[KEY]" if the
// step has for_each, and otherwise "".
func instanceKey(s *Step) string {
	if s.Each() {
		return "[KEY]"
	}
	return ""
}

func (d referenceDecoder) refField(c *eval.Compiled, root, name string, at hcl.Range, ns *names, a allow) bool {
	if root == "self" && slices.Contains([]string{"previous", "collected", "error"}, name) {
		return d.refOwn(c, name, at, a)
	}
	need := map[string]allow{"each": allowEach, "self": allowSelf, "failure": allowFailure, "run": allowRun, "event": allowEvent}[root]
	partly := root == "self" && a&(allowPrevious|allowCollected|allowError) != 0 && !slices.Contains(syntax.RootFields[root], name)
	if a&need == 0 && !partly || root == "each" && !ns.hasEach {
		d.unavailable(at, root)
		return false
	}
	if !slices.Contains(syntax.RootFields[root], name) {
		d.Errorf(at, "Unsupported attribute", "%q has no attribute %q.%s", root, name, diag.Choices(name, fieldsHere(root, ns, a)))
		return false
	}
	if root == "self" && ns.onlySelf != "" && name != ns.onlySelf {
		d.Errorf(at, "Reference not available here", "Of self, only self.%s can be used here.", ns.onlySelf)
		return false
	}
	switch root {
	case "each":
		c.Each = true
		c.EachKey = c.EachKey || name == "key"
	case "self":
		c.Self = true
		c.SelfInput = c.SelfInput || name == "input"
		c.SelfOutput = c.SelfOutput || name == "output"
	case "failure":
		c.Failure = true
	case "event":
		c.Event = true
	case "run":
		c.Run = true
		if name == "status" && a&allowRunStatus == 0 {
			d.Errorf(at, "Reference not available here", "run.status can be used only inside notify. In a step, the run is always running.")
			return false
		}
		if name == "key" && a&allowRunKey == 0 {
			d.Errorf(at, "Reference not available here", "run.key is the value of unique.key, so it cannot be used in it.")
			return false
		}
	}
	return true
}

// fieldsHere returns the attributes of a root, such as `self`, that an expression can use at its
// position.
func fieldsHere(root string, ns *names, a allow) []string {
	if root == "self" && ns.onlySelf != "" {
		return []string{ns.onlySelf}
	}
	// An attribute of `self` without an entry in `needs` requires allowSelf. An attribute of
	// another root without an entry requires nothing.
	usual := map[string]allow{"self": allowSelf}[root]
	needs := map[string]allow{
		"self.previous": allowPrevious, "self.collected": allowCollected, "self.error": allowError,
		"run.status": allowRunStatus, "run.key": allowRunKey,
	}
	return slices.DeleteFunc(slices.Clone(syntax.RootFields[root]), func(name string) bool {
		need, own := needs[root+"."+name]
		if !own {
			need = usual
		}
		return need != 0 && a&need == 0
	})
}

// refOwn checks a reference to an attribute of self that exists only in some blocks:
// self.previous, self.collected or self.error. After an error it returns false.
func (d referenceDecoder) refOwn(c *eval.Compiled, name string, at hcl.Range, a allow) bool {
	c.Self = true
	switch name {
	case "previous":
		c.SelfPrevious = true
	case "collected":
		c.SelfCollected = true
		c.SelfOutput = true // self.collected consists of outputs, so it is not known without them
	default:
		if a&allowError == 0 {
			d.Errorf(at, "Reference not available here", "self.error can be used only in catch.output. In compensate and notify, failure.code names the failure.")
		}
		return a&allowError != 0
	}
	return d.refLoop(name, at, a)
}

// refArgument checks a reference args.NAME to an argument of a declared action. After an error it
// returns false.
func (d referenceDecoder) refArgument(c *eval.Compiled, name string, at hcl.Range, ns *names, a allow) bool {
	c.Args = true
	switch {
	case a&allowArgs == 0:
		d.unavailable(at, "args")
		return false
	case !slices.Contains(ns.arguments, name):
		d.Errorf(at, "Reference to undeclared argument", "The action has no argument named %q.%s", name, diag.DidYouMean(name, ns.arguments))
		return false
	}
	return true
}

func (d referenceDecoder) unavailable(at hcl.Range, root string) {
	where := map[string]string{
		"each":    "inside a step that has for_each (not in settings of the step as a whole)",
		"args":    "in the input of an action that an agent block declares",
		"self":    "inside fail_when, postcondition, repeat, compensate and the output of catch, in other arguments of a step with repeat, and in the input of a declared action",
		"failure": "inside compensate and notify",
		"event":   "inside on_event and reset_on; the variables of on_event pass values on to the run",
		"step":    "inside steps, outputs and the locals of a workflow",
		"group":   "inside steps, outputs and the locals of a workflow",
		"run":     "inside a workflow",
		"local":   "where the rest of the definition is not needed",
		"var":     "where a value is known when a run starts",
	}[root]
	d.Errorf(at, "Reference not available here", "%q can be used only %s.", root, where)
}

// local compiles a local, and all locals to which the local refers. If the search is already inside
// of the local, there is a cycle: then the method reports the cycle and returns nil.
func (d referenceDecoder) local(l *eval.Local, ns *names) *eval.Compiled {
	switch d.visits[l] {
	case finished:
		return l.Expr.Compiled
	case active:
		d.localCycle(l, ns)
		return nil
	}
	d.visits[l] = active
	a := allowVar | allowLocal
	if !l.File {
		a = allowForward
	}
	scope := ns
	if l.File {
		scope = &names{variables: d.m.Variables, locals: d.m.locals}
	}
	c := d.compile(l.Expr, scope, a)
	d.visits[l] = finished
	return c
}

func (d referenceDecoder) localCycle(l *eval.Local, ns *names) {
	l.Expr.Bad = true
	path := []string{"local." + l.Name}
	cur := l
	for range len(ns.locals) + 1 {
		next := d.nextActive(cur, ns)
		if next == nil {
			break
		}
		path = append(path, "local."+next.Name)
		if next == l {
			break
		}
		cur = next
	}
	d.Errorf(l.Where, "Cycle in local values", "Local values depend on each other: %s.", strings.Join(path, " → "))
}

func (d referenceDecoder) nextActive(l *eval.Local, ns *names) *eval.Local {
	for _, t := range l.Expr.Syntax.Variables() {
		if t.RootName() != "local" || len(t) < 2 {
			continue
		}
		if n := ns.locals[eval.NameOf(t[1])]; n != nil && d.visits[n] == active {
			return n
		}
	}
	return nil
}

// refLoop checks a reference to self.previous or self.collected. After an error it returns false.
func (d referenceDecoder) refLoop(name string, at hcl.Range, a allow) bool {
	switch {
	case name == "previous" && a&allowPrevious == 0, name == "collected" && a&(allowPrevious|allowCollected) == 0:
		d.Errorf(at, "Reference not available here",
			"self.%s can be used only in a step with a repeat block: in when, input, value, timer, wait, conditions, compensate.input and in the repeat block itself, except max_iterations.", name)
		return false
	case name == "collected" && a&allowCollected == 0:
		d.Errorf(at, "Nothing is collected", "self.collected holds what collect = ... in the repeat block appends, and the block has no collect.")
		return false
	}
	return true
}

// stepInNotify reports that an expression in a notify block uses a step. If a local uses the step,
// the parameter `why` is a sentence that names the local, and the message begins with this
// sentence. If the expression itself uses the step, `why` is "".
func (d referenceDecoder) stepInNotify(at hcl.Range, why string) {
	d.Errorf(at, "Reference not available here",
		"%sA notify block cannot use steps, because a step may have no result when the run fails or parks. Use run, failure, var and local. To send a result, write a last step with catch { errors = [\"*\"] }.", why)
}
