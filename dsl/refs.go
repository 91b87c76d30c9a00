package dsl

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/secret"
)

// A referenceDecoder compiles expressions: it finds what they refer to, and refuses
// references that are not allowed where they are.
type referenceDecoder struct {
	*decoder
	visits map[*localDecl]visit // of the search through local values
}

// A visit is how far a depth-first search has come with a local value.
type visit uint8

const (
	unseen visit = iota
	active
	finished
)

// allow says what an expression may refer to.
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
)

const (
	allowRunLevel = allowVar | allowLocal | allowRun | allowRunKey
	allowForward  = allowRunLevel | allowStep
)

// secretRule says where secret() may be written.
const secretRule = "secret() may stand only in an agent's config and in the input of a step or of its undo, alone or inside a string."

// A compiled expression knows what it refers to, so that only that is put
// into its evaluation context.
type compiled struct {
	syn     hclsyntax.Expression // as written
	paid    hclsyntax.Expression // as it is evaluated
	refs    []hcl.Traversal      // that were not refused
	vars    bool
	locals  []*localDecl
	steps   []int             // direct and through locals, ascending
	direct  map[int]hcl.Range // steps the expression names itself
	named   []int             // the keys of direct, ascending
	each    bool
	eachKey bool
	self    bool
	selfOut bool
	failure bool
	run     bool
	secrets bool
	konst   *cty.Value // value, if it refers to nothing
}

// names is what a place in the source can see.
type names struct {
	variables map[string]*variableDecl
	locals    map[string]*localDecl
	steps     []*stepDecl
	index     map[string]int
	hasEach   bool
	inUndoOf  string // name of the step, inside compensate
}

// calls returns the calls of the named functions in an expression, of all
// functions if none is named.
func calls(e hclsyntax.Expression, only ...string) []*hclsyntax.FunctionCallExpr {
	var out []*hclsyntax.FunctionCallExpr
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		if c, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			if len(only) == 0 {
				out = append(out, c)
			}
			for _, name := range only {
				if c.Name == name {
					out = append(out, c)
				}
			}
		}
		return nil
	})
	return out
}

// checkSyntax reports what is wrong with an expression alone, without the values that it reads: functions
// that do not exist, numbers too long; it makes long numbers exact.
func (r syntaxReader) checkSyntax(e *expr) {
	hclsyntax.VisitAll(e.syn, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.FunctionCallExpr:
			if !functions.Known(n.Name) {
				e.bad = true
				hint := diag.DidYouMean(n.Name, functions.Names())
				if why, ok := functions.Impure[n.Name]; ok {
					hint = " " + why
				}
				r.errorf(n.NameRange, "Call to unknown function", "There is no function named %q.%s", n.Name, hint)
			}
		case *hclsyntax.LiteralValueExpr:
			r.checkNumber(e, n)
		}
		return nil
	})
}

// checkNumber keeps literal numbers exact: the library rounds what it reads
// to 512 bits, about 150 digits.
func (r syntaxReader) checkNumber(e *expr, n *hclsyntax.LiteralValueExpr) {
	if n.Val.Type() != cty.Number || n.Val.IsNull() || !n.Val.IsKnown() {
		return
	}
	if _, err := value.NumberText(n.Val.AsBigFloat()); err != nil {
		e.bad = true
		r.errorf(n.SrcRange, "Number too long", "A number may have at most %d digits.", value.MaxDigits)
		return
	}
	src := r.sources[n.SrcRange.Filename]
	from, to := n.SrcRange.Start.Byte, n.SrcRange.End.Byte
	if to-from < 100 || to > len(src) {
		return
	}
	if v, err := value.ParseNumber(strings.TrimSpace(string(src[from:to]))); err == nil {
		n.Val = v
	}
}

// compile checks every reference of an expression and notes what it uses.
func (d referenceDecoder) compile(e *expr, ns *names, a allow) *compiled {
	if e == nil {
		return nil
	}
	if e.comp != nil {
		return e.comp
	}
	c := &compiled{syn: e.syn, direct: map[int]hcl.Range{}}
	e.comp = c
	locals := map[string]*localDecl{}
	for _, t := range e.syn.Variables() { // also where something else is wrong already
		if d.reference(c, t, ns, a, locals) {
			c.refs = append(c.refs, t)
		} else {
			e.bad = true
		}
	}
	if !d.secretCalls(c, a) {
		e.bad = true
	}
	for _, n := range sorted.Keys(locals) {
		c.locals = append(c.locals, locals[n])
	}
	all := map[int]bool{}
	for i := range c.direct {
		all[i] = true
	}
	for _, l := range c.locals { // compiled before, in order of use
		if l.expr.bad {
			e.bad = true
		}
		if lc := l.expr.comp; lc != nil {
			for _, i := range lc.steps {
				all[i] = true
			}
		}
	}
	for i := range all {
		c.steps = append(c.steps, i)
	}
	sort.Ints(c.steps)
	for i := range c.direct {
		c.named = append(c.named, i)
	}
	sort.Ints(c.named)
	c.paid = metered.Of(e.syn)
	d.fold(e, c)
	return c
}

// fold evaluates an expression that refers to nothing, once and for all.
func (d referenceDecoder) fold(e *expr, c *compiled) {
	if e.bad || c.secrets || len(e.syn.Variables()) > 0 {
		return
	}
	v, diags := metered.Evaluate(c.paid, metered.ConstantContext(d.m.funcs, d.allowance()))
	d.hcl(diags)
	if diags.HasErrors() {
		e.bad = true
		return
	}
	c.konst = &v
}

// reference checks one traversal; false means it was refused.
func (d referenceDecoder) reference(c *compiled, t hcl.Traversal, ns *names, a allow, locals map[string]*localDecl) bool {
	rng := t.SourceRange()
	root := t.RootName()
	name, named := "", false
	if len(t) > 1 {
		switch s := t[1].(type) {
		case hcl.TraverseAttr:
			name, named = s.Name, true
		case hcl.TraverseIndex:
			if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
				name, named = s.Key.AsString(), true
			}
		}
	}
	known := root == "var" || root == "local" || root == "step" || rootFields[root] != nil
	if known && !named {
		d.errorf(rng, "Invalid reference", "%q is not a value by itself; write %s.NAME.", root, root)
		return false
	}
	switch root {
	case "var":
		c.vars = true
		return d.refVar(name, rng, ns, a)
	case "local":
		l, ok := ns.locals[name]
		switch {
		case a&allowLocal == 0:
			d.unavailable(rng, "local")
			return false
		case !ok:
			d.errorf(rng, "Reference to undeclared local value", "There is no local value named %q.%s",
				name, diag.DidYouMean(name, sorted.Keys(ns.locals)))
			return false
		}
		locals[name] = l
		return d.refLocal(l, rng, ns, a, c)
	case "step":
		return d.refStep(c, t, name, rng, ns, a)
	case "each", "self", "failure", "run":
		return d.refField(c, root, name, rng, ns, a)
	case "agent":
		d.errorf(rng, "Invalid reference", "An agent's action is not a value; it can stand only in action = agent.NAME.ACTION.")
	case "workflow":
		d.errorf(rng, "Invalid reference", "A workflow is not a value.")
	default:
		d.unknownRoot(root, t, ns)
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
		hint = diag.DidYouMean(root, []string{"var", "local", "step", "each", "self", "failure", "run"})
	}
	if len(t) == 1 && hint == "" {
		hint = fmt.Sprintf(" A string is written in quotes: %q.", root)
	}
	d.errorf(t.SourceRange(), "Unknown reference", "There is nothing named %q here.%s", root, hint)
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
	d.errorf(at, "Reference to undeclared variable", "There is no variable named %q.%s", name, hint)
	return false
}

// refLocal checks that what a local uses is available where it is used.
func (d referenceDecoder) refLocal(l *localDecl, at hcl.Range, ns *names, a allow, c *compiled) bool {
	lc := d.local(l, ns)
	if lc == nil {
		return false // part of a cycle, reported
	}
	if len(lc.steps) > 0 && a&allowStep == 0 {
		d.errorf(at, "Reference not available here", "local.%s uses step.%s, which is not available here.",
			l.name, ns.steps[lc.steps[0]].name)
		return false
	}
	c.vars = c.vars || lc.vars
	c.run = c.run || lc.run
	return true
}

// refStep checks step.NAME... and the attribute after it.
func (d referenceDecoder) refStep(c *compiled, t hcl.Traversal, name string, at hcl.Range, ns *names, a allow) bool {
	if a&allowStep == 0 {
		d.unavailable(at, "step")
		return false
	}
	i, ok := ns.index[name]
	if !ok {
		d.errorf(at, "Reference to undeclared step", "There is no step named %q in this workflow.%s",
			name, diag.DidYouMean(name, sorted.Keys(ns.index)))
		return false
	}
	if _, seen := c.direct[i]; !seen {
		c.direct[i] = at
	}
	s := ns.steps[i]
	field := 2
	if s.each() {
		if len(t) > 2 {
			if attr, ok := t[2].(hcl.TraverseAttr); ok && slices.Contains(stepFields, attr.Name) {
				d.errorf(at, "Missing key of step", "Step %q has for_each: step.%s is a map with one entry a key. Write step.%s[KEY].%s.",
					name, name, name, attr.Name)
				return false
			}
		}
		field = 3
	} else if len(t) > 2 {
		if _, ok := t[2].(hcl.TraverseIndex); ok {
			d.errorf(at, "Step without instances", "Step %q has no for_each, so it has no key. Write step.%s.output.NAME.", name, name)
			return false
		}
	}
	if len(t) > field {
		if attr, ok := t[field].(hcl.TraverseAttr); ok && !slices.Contains(stepFields, attr.Name) {
			hint := diag.DidYouMean(attr.Name, stepFields)
			if hint == "" {
				hint = fmt.Sprintf(" Results are under output: step.%s.output.%s.", name, attr.Name)
			}
			d.errorf(t.SourceRange(), "Unsupported attribute", "A step has no attribute %q.%s", attr.Name, hint)
			return false
		}
	}
	return true
}

func (d referenceDecoder) refField(c *compiled, root, name string, at hcl.Range, ns *names, a allow) bool {
	need := map[string]allow{"each": allowEach, "self": allowSelf, "failure": allowFailure, "run": allowRun}[root]
	if a&need == 0 || root == "each" && !ns.hasEach {
		d.unavailable(at, root)
		return false
	}
	if !slices.Contains(rootFields[root], name) {
		d.errorf(at, "Unsupported attribute", "%q has no attribute %q.%s", root, name, diag.DidYouMean(name, rootFields[root]))
		return false
	}
	switch root {
	case "each":
		c.each = true
		c.eachKey = c.eachKey || name == "key"
	case "self":
		c.self = true
		c.selfOut = c.selfOut || name == "output"
	case "failure":
		c.failure = true
	case "run":
		c.run = true
		if name == "key" && a&allowRunKey == 0 {
			d.errorf(at, "Reference not available here", "run.key is the value of unique.key, so it cannot be used in it.")
			return false
		}
	}
	return true
}

func (d referenceDecoder) unavailable(at hcl.Range, root string) {
	where := map[string]string{
		"each":    "inside a step that has for_each (not in settings of the step as a whole)",
		"self":    "inside postcondition and compensate",
		"failure": "inside compensate",
		"step":    "inside steps, outputs and the locals of a workflow",
		"run":     "inside a workflow",
		"local":   "where the rest of the definition is not needed",
		"var":     "where a value is known when a run starts",
	}[root]
	d.errorf(at, "Reference not available here", "%q can be used only %s.", root, where)
}

// local compiles a local value, and those it uses first. It returns nil for
// one that is part of a cycle.
func (d referenceDecoder) local(l *localDecl, ns *names) *compiled {
	switch d.visits[l] {
	case finished:
		return l.expr.comp
	case active:
		d.localCycle(l, ns)
		return nil
	}
	d.visits[l] = active
	a := allowVar | allowLocal
	if !l.file {
		a = allowForward
	}
	scope := ns
	if l.file {
		scope = &names{variables: d.m.variables, locals: d.m.locals}
	}
	c := d.compile(l.expr, scope, a)
	d.visits[l] = finished
	return c
}

func (d referenceDecoder) localCycle(l *localDecl, ns *names) {
	l.expr.bad = true
	path := []string{"local." + l.name}
	cur := l
	for range len(ns.locals) + 1 {
		next := d.nextActive(cur, ns)
		if next == nil {
			break
		}
		path = append(path, "local."+next.name)
		if next == l {
			break
		}
		cur = next
	}
	d.errorf(l.where, "Cycle in local values", "Local values depend on each other: %s.", strings.Join(path, " → "))
}

func (d referenceDecoder) nextActive(l *localDecl, ns *names) *localDecl {
	for _, t := range l.expr.syn.Variables() {
		if t.RootName() != "local" || len(t) < 2 {
			continue
		}
		if attr, ok := t[1].(hcl.TraverseAttr); ok {
			if n := ns.locals[attr.Name]; n != nil && d.visits[n] == active {
				return n
			}
		}
	}
	return nil
}

// secretCalls checks where secret() stands and what it names.
func (d referenceDecoder) secretCalls(c *compiled, a allow) bool {
	all := calls(c.syn, "secret")
	if len(all) == 0 {
		return true
	}
	c.secrets = true
	allowed := map[*hclsyntax.FunctionCallExpr]bool{}
	if a&allowSecret != 0 {
		secretPlaces(c.syn, allowed)
	}
	ok := true
	for _, call := range all {
		ref, literal := literalString(call)
		switch {
		case !allowed[call]:
			d.errorf(call.Range(), "secret() not allowed here", "%s", secretRule)
		case !literal || !validSecretRef(ref):
			d.errorf(call.Range(), "Invalid secret reference", "Write secret(\"env:NAME\") or secret(\"file:PATH\") with a plain string.")
		case d.lit.reservedSecret(ref):
			d.errorf(call.Range(), "Reserved variable", "secret(%q): %s.", ref, secret.ReservedEnvRule)
		default:
			continue
		}
		ok = false
	}
	return ok
}

func validSecretRef(ref string) bool {
	kind, rest, found := strings.Cut(ref, ":")
	return found && rest != "" && (kind == "env" || kind == "file")
}

// secretPlaces collects the calls of secret() that stand alone, inside a
// template, or there inside of objects and tuples.
func secretPlaces(e hclsyntax.Expression, out map[*hclsyntax.FunctionCallExpr]bool) {
	switch e := e.(type) {
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "secret" {
			out[e] = true
		}
	case *hclsyntax.TemplateExpr:
		for _, p := range e.Parts {
			if call, ok := p.(*hclsyntax.FunctionCallExpr); ok {
				secretPlaces(call, out)
			}
		}
	case *hclsyntax.TemplateWrapExpr:
		secretPlaces(e.Wrapped, out)
	case *hclsyntax.ParenthesesExpr:
		secretPlaces(e.Expression, out)
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			secretPlaces(item.ValueExpr, out)
		}
	case *hclsyntax.TupleConsExpr:
		for _, x := range e.Exprs {
			secretPlaces(x, out)
		}
	}
}
