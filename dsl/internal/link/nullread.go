package link

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// nullReads warns about expressions that read an attribute of an output, although the whole output
// may be null. If the output is null, such an expression fails. nullReads does not warn if a guard
// makes the read safe (see guard).
func (l nullChecker) nullReads() {
	for i, s := range l.steps {
		d := s.decl
		for _, name := range sorted.Keys(d.Block.Attrs) {
			l.nullRead(d.Block.Attrs[name], d, l.coveredByWhen(d, name))
		}
		for _, a := range d.Input {
			l.nullRead(a.Expr, d, true)
		}
		for _, b := range []*syntax.Block{d.Block.One("timer"), d.Block.One("wait")} {
			for _, e := range decl.AttrsOf(b) {
				l.nullRead(e, d, true)
			}
		}
		for _, c := range d.Conditions() {
			l.nullRead(c.Condition, d, true)
		}
		if u := l.steps[i].decl.Undo; u != nil {
			for _, a := range u.Input {
				l.nullRead(a.Expr, d, true)
			}
		}
	}
	for _, loc := range l.decl.OwnLocals {
		l.nullRead(loc.Expr, nil, false)
	}
	for _, o := range l.decl.Outputs {
		l.nullRead(o.Value, nil, false)
	}
	for _, name := range sorted.Keys(decl.AttrsOf(l.decl.Concurrency)) {
		l.nullRead(l.decl.Concurrency.Attrs[name], nil, false)
	}
}

// coveredByWhen reports whether the engine evaluates an attribute of a step only if the condition
// in the attribute `when` is true. If the engine evaluates the condition for each instance (see
// decl.Step.WhenEach), it evaluates for_each and the settings first, and the condition later. So it
// evaluates for_each and the settings even if the condition is false.
func (l nullChecker) coveredByWhen(d *decl.Step, attr string) bool {
	return attr != "when" && (attr == "value" || !d.WhenEach() || attr == "idempotency_key")
}

// A nullReason is one reason why the output of a step can be null.
type nullReason struct {
	skipped bool   // true = the step has the attribute `when`, so it may be skipped
	text    string // why the value can be null; for messages, worded to follow the name of the step
}

func (l nullChecker) nullReasons(d *decl.Step) []nullReason {
	var out []nullReason
	if d.Attr("when") != nil {
		out = append(out, nullReason{true, "is skipped when its condition is false"})
	}
	if d.Catch != nil && d.Catch.Attr("output") == nil {
		out = append(out, nullReason{false, "has a catch without output"})
	}
	if d.Wait != nil && d.Wait.Continue {
		out = append(out, nullReason{false, "goes on without a signal when its deadline passes"})
	}
	if d.Attr("max_failures") != nil {
		out = append(out, nullReason{false, "tolerates failed instances"})
	}
	return out
}

// attrText returns the source text of an attribute of a step, without white space. It returns "" if
// d is nil or does not have the attribute.
func (l nullChecker) attrText(d *decl.Step, name string) string {
	if d == nil || d.Attr(name) == nil {
		return ""
	}
	return l.sourceText(d.Attr(name).Range)
}

func (l nullChecker) sourceText(r hcl.Range) string {
	return string(withoutSpace([]byte(l.exactText(r))))
}

func (l nullChecker) exactText(r hcl.Range) string {
	src := l.Sources[r.Filename]
	if r.Start.Byte < 0 || r.End.Byte > len(src) || r.Start.Byte > r.End.Byte {
		return ""
	}
	return string(src[r.Start.Byte:r.End.Byte])
}

// withoutSpace returns b without white space. So two texts of the same condition are equal, even
// if their layouts differ.
func withoutSpace(b []byte) []byte {
	var out []byte
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			out = append(out, c)
		}
	}
	return out
}

func (l nullChecker) nullRead(e *eval.Expr, reader *decl.Step, covered bool) {
	if e == nil || e.Bad || e.Compiled == nil || len(e.Compiled.StepRefs) == 0 && l.decl.Outer == nil {
		return
	}
	v := &nullVisitor{l: l, reader: reader}
	v.guards = l.groupGuards(v)
	if covered {
		if when := reader.Attr("when"); when != nil && !when.Bad && when.Compiled != nil {
			v.guards = append(v.guards, v.tested(nil, when.Syntax, when.Range))
		}
	}
	hclsyntax.Walk(e.Syntax, v)
}

// A nullVisitor visits the parts of an expression. It finds outputs that are read without a guard.
type nullVisitor struct {
	l      nullChecker
	reader *decl.Step // step that contains the expression; nil = a local, an output or the concurrency block
	guards []guard    // guards that contain the current part, innermost last
	loops  []stepLoop // loops that contain the current part, innermost last
}

// A guard is an expression that makes it safe to read the outputs of some steps inside of the
// expression. It is a call of try() or can(), or an expression with a condition. The condition
// tests the steps, or has the same text as the attribute `when` of the step that is read.
type guard struct {
	// Expression inside of which the reads are safe. nil = the whole checked expression. Then the
	// condition is the attribute `when` of the step that contains the checked expression, or of a
	// group that contains this step.
	node  hclsyntax.Node
	all   bool            // true = it is safe to read every step
	steps map[string]bool // names of the steps that are safe to read
	// outputs has the outputs of child runs that are safe to read, as STEP.OUTPUT.
	outputs map[string]bool
	when    string // text of the condition, without white space; "" = no condition
}

// A stepLoop is a "for" expression over the instances of a step.
type stepLoop struct {
	node           hclsyntax.Node
	variable, step string
}

// Enter is called before the parts of n are visited. If n is a guard or a loop, Enter adds it
// to v.guards or v.loops. If n is a reference to the output of a step, Enter checks this
// reference.
func (v *nullVisitor) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := n.(type) {
	case *hclsyntax.FunctionCallExpr:
		if n.Name == "try" || n.Name == "can" {
			v.guards = append(v.guards, guard{node: n, all: true})
		}
	case *hclsyntax.ConditionalExpr:
		v.guards = append(v.guards, v.tested(n, n.Condition, n.Condition.Range()))
	case *hclsyntax.BinaryOpExpr:
		if n.Op == hclsyntax.OpLogicalAnd || n.Op == hclsyntax.OpLogicalOr {
			v.guards = append(v.guards, v.tested(n, n.LHS, n.LHS.Range()))
		}
	case *hclsyntax.ForExpr:
		if n.CondExpr != nil {
			// The condition of the "for" expression may test each instance. So every read in
			// the loop counts as safe.
			v.guards = append(v.guards, guard{node: n, all: true})
		}
		if step := wholeStep(n.CollExpr); step != "" {
			v.loops = append(v.loops, stepLoop{n, n.ValVar, step})
		}
	}
	if r, ok := v.readOf(n); ok {
		v.read(r)
	}
	return nil
}

// Exit removes n from v.guards and v.loops.
func (v *nullVisitor) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if k := len(v.guards); k > 0 && v.guards[k-1].node == n {
		v.guards = v.guards[:k-1]
	}
	if k := len(v.loops); k > 0 && v.loops[k-1].node == n {
		v.loops = v.loops[:k-1]
	}
	return nil
}

// tested returns the guard for the expression n. If n is nil, it returns the guard for the whole
// checked expression. The guard names the steps that the condition `cond` tests: inside of the
// guarded expression it is safe to read these steps. A condition tests a step if it reads one of
// these attributes of the step: status, error, timed_out, signal, or the whole output. It also
// tests a step if it reads a part of the output inside of try() or can(). The parameter `written`
// is the position of the condition in the source.
func (v *nullVisitor) tested(n hclsyntax.Node, cond hclsyntax.Expression, written hcl.Range) guard {
	g := guard{node: n, steps: map[string]bool{}, outputs: map[string]bool{}, when: v.l.sourceText(written)}
	safe := eval.Calls(cond, "try", "can")
	hclsyntax.VisitAll(cond, func(n hclsyntax.Node) hcl.Diagnostics {
		r, ok := v.readOf(n)
		if !ok {
			return nil
		}
		inside := slices.ContainsFunc(safe, func(f *hclsyntax.FunctionCallExpr) bool { return f.Range().ContainsOffset(r.at.Start.Byte) })
		if r.field == "status" || r.field == "error" || r.field == "timed_out" || r.field == "signal" || r.field == "output" && (r.whole || inside) {
			g.steps[r.step] = true
		}
		if r.output != "" {
			g.outputs[r.step+"."+r.output] = true
		}
		return nil
	})
	return g
}

// A stepRead is a reference to an attribute of a step or of an instance.
type stepRead struct {
	step, field string    // name of the step, and the attribute, such as "output"
	output      string    // X in a reference such as step.NAME.output.X; "" = the reference names no output
	deep        bool      // true = the reference continues after X, as in step.NAME.output.X.Y
	whole       bool      // true = the reference ends with the attribute, as in step.NAME.output
	byEach      bool      // true = the key of the instance is each.key
	at          hcl.Range // position of the reference
	text        string    // source text of the reference
}

// readOf returns the stepRead of an expression. It accepts step.NAME.FIELD and
// step.NAME[KEY].FIELD. In a loop over the instances of a step, it also accepts VARIABLE.FIELD. It
// returns false for any other expression.
func (v *nullVisitor) readOf(n hclsyntax.Node) (stepRead, bool) {
	r := stepRead{}
	var rest hcl.Traversal
	switch n := n.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		t := n.Traversal
		if r.step = v.loopStep(t.RootName()); r.step != "" {
			rest = t[1:]
		} else if name, ok := stepName(t); ok {
			r.step, rest = name, t[2:]
			if d := v.l.find(name); d != nil && d.Each() && len(rest) > 0 {
				rest = rest[1:] // the first part is the key of an instance
			}
		}
	case *hclsyntax.RelativeTraversalExpr:
		index, ok := n.Source.(*hclsyntax.IndexExpr)
		if !ok {
			return r, false
		}
		r.step, rest = wholeStep(index.Collection), n.Traversal
		r.byEach = v.l.sourceText(index.Key.Range()) == "each.key"
	}
	for k, part := range rest {
		if name := eval.NameOf(part); r.step != "" && slices.Contains(syntax.StepFields, name) {
			r.field, r.whole, r.at = name, k == len(rest)-1, n.Range()
			r.named(rest[k+1:])
			// In a JSON file, the source text of the reference may contain escapes. In this case,
			// use a text that is made from the names in the reference.
			if r.text = v.l.exactText(r.at); !strings.Contains(r.text, "."+r.field) && !strings.Contains(r.text, `["`+r.field+`"]`) {
				r.text = v.l.wordOf(r.step) + "." + r.step + "." + r.field
			}
			return r, true
		}
	}
	return r, false
}

// loopStep returns the name of a step, if the variable of a loop over the instances of this step
// has the name in the parameter `variable`. If no loop has such a variable, loopStep returns "".
func (v *nullVisitor) loopStep(variable string) string {
	for k := len(v.loops) - 1; k >= 0; k-- {
		if v.loops[k].variable == variable {
			return v.loops[k].step
		}
	}
	return ""
}

// stepName returns NAME if t begins with step.NAME. In a group it also returns NAME if t begins
// with a hidden variable: such a variable holds the value of a step or group that is outside of the
// group, and has the name step.NAME or group.NAME. For any other reference stepName returns false.
func stepName(t hcl.Traversal) (string, bool) {
	if len(t) < 2 {
		return "", false
	}
	name := eval.NameOf(t[1])
	if t.RootName() == "var" {
		return decl.StepAround(name)
	}
	return name, name != "" && t.RootName() == "step"
}

// wholeStep returns NAME if the whole expression is step.NAME; otherwise "".
func wholeStep(e hclsyntax.Expression) string {
	t, ok := e.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 {
		return ""
	}
	name, _ := stepName(t.Traversal)
	return name
}

func (v *nullVisitor) read(r stepRead) {
	d := v.l.find(r.step)
	// A reference to the whole output never fails, even if the output is null.
	if d == nil || r.field != "output" || r.whole {
		return
	}
	reasons := v.l.nullReasons(d)
	for _, g := range v.guards {
		if g.all {
			return
		}
		if g.steps[r.step] {
			reasons = nil
		}
		if v.sameWhen(d, g.when, r) {
			reasons = slices.DeleteFunc(reasons, func(x nullReason) bool { return x.skipped })
		}
	}
	if len(reasons) == 0 {
		v.readDeep(d, r)
		return
	}
	v.l.Warnf(r.at, "Output may be null",
		"%s %s; then its output is null and reading an attribute fails. Use try(%s, null), or test %s.",
		d.Title(), reasons[0].text, r.text, r.status())
}

// status returns the text of a reference to the status of the step or instance that r reads.
func (r stepRead) status() string {
	before, _, found := strings.Cut(r.text, ".output")
	if !found {
		before, _, _ = strings.Cut(r.text, `["output"]`)
	}
	return before + ".status"
}

// sameWhen reports whether a condition makes the reference r to the step d safe, because the
// condition is the same as the attribute `when` of d. The parameter `text` is the text of a
// condition that guards r. This text must equal the text of `when`. If the engine evaluates `when`
// for each instance, there are two more rules: r must have the form step.NAME[each.key].FIELD, and
// the step or group that gives each.key its value at r must have the same for_each as d.
func (v *nullVisitor) sameWhen(d *decl.Step, text string, r stepRead) bool {
	if text == "" || text != v.l.attrText(d, "when") {
		return false
	}
	return !d.WhenEach() || r.byEach && v.l.attrText(d, "for_each") == v.eachText()
}

// find looks for the step with the given name in the workflow or group, and then in the workflows
// that contain the group. No step in a group has the name of a step outside of the group in these
// workflows, so at most one step has the name. The method `find` returns nil if there is none.
func (l nullChecker) find(name string) *decl.Step {
	for w := l.decl; w != nil; w = w.Outer {
		if i, ok := w.Index[name]; ok {
			return w.Steps[i]
		}
	}
	return nil
}

// wordOf returns the word with which a reference to the step begins: "group" or "step".
func (l nullChecker) wordOf(name string) string {
	if d := l.find(name); d != nil && d.Child != nil && d.Child.Group {
		return "group"
	}
	return "step"
}

// groupGuards returns guards for all expressions inside of a group. The reason is that the engine
// evaluates no expression in the group if the attribute `when` of the group is false, or if `when`
// of a group that contains this group is false. For a workflow that is no group, groupGuards
// returns nil.
func (l nullChecker) groupGuards(v *nullVisitor) []guard {
	var out []guard
	for w := l.decl; w.Outer != nil; w = w.Outer {
		if when := w.Holder.Attr("when"); when != nil && !when.Bad && when.Compiled != nil {
			out = append(out, v.tested(nil, when.Syntax, when.Range))
		}
	}
	return out
}

// eachText returns the text of the for_each that gives each.key its value in the expression: the
// for_each of the step that contains the expression. If this step has no for_each, it is the
// for_each of the innermost group that has one. eachText returns "" if there is no for_each.
func (v *nullVisitor) eachText() string {
	if v.reader != nil && v.reader.Each() {
		return v.l.attrText(v.reader, "for_each")
	}
	for w := v.l.decl; w.Outer != nil; w = w.Outer {
		if w.Holder.Each() {
			return v.l.attrText(w.Holder, "for_each")
		}
	}
	return ""
}

// named sets the fields `output` and `deep` if the reference is step.NAME.output.X. The parameter
// `rest` has the parts of the reference after the attribute in r.field. For any other reference,
// named does nothing.
func (r *stepRead) named(rest hcl.Traversal) {
	if r.field != "output" || len(rest) == 0 {
		return
	}
	if name := eval.NameOf(rest[0]); name != "" {
		r.output, r.deep = name, len(rest) > 1
	}
}

// readDeep warns about a reference to a part of one output of a child run or group, such as
// step.NAME.output.X.Y. It warns only in one case: the output X is the whole output of a step of
// the child run, and the output of this step may be null.
func (v *nullVisitor) readDeep(d *decl.Step, r stepRead) {
	if !r.deep || d.Child == nil || d.Child.Workflow == nil {
		return
	}
	for _, g := range v.guards {
		if g.outputs[r.step+"."+r.output] {
			return
		}
	}
	for _, o := range d.Child.Workflow.Outputs {
		inner := wholeOutput(d.Child.Workflow, o.Value)
		if o.Name != r.output || inner == nil {
			continue
		}
		if reasons := v.l.nullReasons(inner); len(reasons) > 0 {
			v.l.Warnf(r.at, "Output may be null",
				"Output %q of %s is the output of step %q. That step %s; then the output is null and reading an attribute of it fails. Use try(%s, null).",
				o.Name, strings.ToLower(d.Title()[:1])+d.Title()[1:], inner.Name, reasons[0].text, r.text)
		}
		return
	}
}

// wholeOutput returns the step of the workflow w whose whole output is the value of the expression
// e: e is step.NAME.output. For any other expression it returns nil.
func wholeOutput(w *decl.Workflow, e *eval.Expr) *decl.Step {
	if e == nil || e.Bad {
		return nil
	}
	t, ok := e.Syntax.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 3 {
		return nil
	}
	name, ok := stepName(t.Traversal)
	i, known := w.Index[name]
	if a, isAttr := t.Traversal[2].(hcl.TraverseAttr); !ok || !known || !isAttr || a.Name != "output" || w.Steps[i].Each() {
		return nil
	}
	return w.Steps[i]
}
