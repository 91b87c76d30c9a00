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

// nullReads warns about expressions that read an attribute of a step's output without a guard,
// although the output may be null. If it is null, the expression fails.
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
}

// coveredByWhen reports whether an attribute of a step is evaluated only if the condition in when
// is true. A condition that mentions each.* is evaluated after for_each and the settings, so it
// does not cover them.
func (l nullChecker) coveredByWhen(d *decl.Step, attr string) bool {
	return attr != "when" && (attr == "value" || !d.WhenEach() || attr == "idempotency_key")
}

// A nullReason is why the output of a step can be null.
type nullReason struct {
	skipped bool // the step has a `when`, so it may be skipped
	text    string
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

// attrText returns the source of a step's attribute without white space; "" if not written.
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

// withoutSpace removes white space, so that two layouts of one condition are equal.
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
	if e == nil || e.Bad || e.Compiled == nil || len(e.Compiled.Direct) == 0 {
		return
	}
	v := &nullVisitor{l: l, reader: reader}
	if covered {
		if when := reader.Attr("when"); when != nil && !when.Bad && when.Compiled != nil {
			v.guards = append(v.guards, v.tested(nil, when.Syntax, when.Range))
		}
	}
	hclsyntax.Walk(e.Syntax, v)
}

// A nullVisitor finds outputs that are read without a guard. A guard is try(), can(), or a
// condition. The condition tests the step's status, or has the same text as the step's `when`.
type nullVisitor struct {
	l      nullChecker
	reader *decl.Step // step with the expression; nil = a local or an output
	guards []guard
	loops  []stepLoop
}

// A guard is an expression inside of which some steps are safe to read.
type guard struct {
	node  hclsyntax.Node  // the expression; nil = the whole reading step, guarded by its when
	all   bool            // every step is safe to read
	steps map[string]bool // names of the steps that are safe to read
	when  string          // text of the condition, without white space
}

// A stepLoop is a "for" expression over the instances of a step.
type stepLoop struct {
	node           hclsyntax.Node
	variable, step string
}

// Enter opens guards and loops and checks references.
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
			// The condition may test each instance.
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

// Exit closes guards and loops.
func (v *nullVisitor) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if k := len(v.guards); k > 0 && v.guards[k-1].node == n {
		v.guards = v.guards[:k-1]
	}
	if k := len(v.loops); k > 0 && v.loops[k-1].node == n {
		v.loops = v.loops[:k-1]
	}
	return nil
}

// tested returns the guard of a condition. Inside of the guard, the steps that the condition tests
// are safe to read. A test reads the status or the error of a step, or asks if there is an output.
func (v *nullVisitor) tested(n hclsyntax.Node, cond hclsyntax.Expression, written hcl.Range) guard {
	g := guard{node: n, steps: map[string]bool{}, when: v.l.sourceText(written)}
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
		return nil
	})
	return g
}

// A stepRead is a reference to an attribute of a step or of an instance.
type stepRead struct {
	step, field string
	whole       bool // the attribute itself is read, nothing inside of it
	byEach      bool // the key of the instance is each.key
	at          hcl.Range
	text        string
}

// readOf returns what an expression reads of a step. It knows step.NAME.FIELD,
// step.NAME[KEY].FIELD and, in a loop over the instances of a step, VARIABLE.FIELD.
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
		if a, ok := part.(hcl.TraverseAttr); ok && r.step != "" && slices.Contains(syntax.StepFields, a.Name) {
			r.field, r.whole, r.at = a.Name, k == len(rest)-1, n.Range()
			// In a JSON source the text of the reference may have escapes.
			if r.text = v.l.exactText(r.at); !strings.Contains(r.text, "."+r.field) {
				r.text = "step." + r.step + "." + r.field
			}
			return r, true
		}
	}
	return r, false
}

// loopStep returns the name of the step over whose instances a loop variable runs; "" = none.
func (v *nullVisitor) loopStep(variable string) string {
	for k := len(v.loops) - 1; k >= 0; k-- {
		if v.loops[k].variable == variable {
			return v.loops[k].step
		}
	}
	return ""
}

// stepName returns NAME of step.NAME.
func stepName(t hcl.Traversal) (string, bool) {
	if t.RootName() != "step" || len(t) < 2 {
		return "", false
	}
	name, ok := t[1].(hcl.TraverseAttr)
	return name.Name, ok
}

// wholeStep returns NAME if an expression is step.NAME and nothing else; otherwise "".
func wholeStep(e hclsyntax.Expression) string {
	t, ok := e.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 {
		return ""
	}
	name, _ := stepName(t.Traversal)
	return name
}

func (v *nullVisitor) read(r stepRead) {
	i, ok := v.l.decl.Index[r.step]
	if !ok || r.field != "output" || r.whole { // to read the whole output is safe, even if it is null
		return
	}
	d := v.l.steps[i].decl
	reasons := v.l.nullReasons(d)
	for _, g := range v.guards {
		if g.all || g.steps[r.step] {
			return
		}
		if v.sameWhen(d, g.when, r) {
			reasons = slices.DeleteFunc(reasons, func(x nullReason) bool { return x.skipped })
		}
	}
	if len(reasons) == 0 {
		return
	}
	v.l.Warnf(r.at, "Output may be null",
		"Step %q %s; then its output is null and reading an attribute fails. Use try(%s, null), or test %s.",
		r.step, reasons[0].text, r.text, r.status())
}

// status returns the text of the reference to the status of the same step.
func (r stepRead) status() string {
	before, _, _ := strings.Cut(r.text, ".output")
	return before + ".status"
}

// sameWhen reports whether a condition is the same as in when of the step d. If it mentions each.*,
// the reading step must have the same for_each, and read the instance with its own key.
func (v *nullVisitor) sameWhen(d *decl.Step, text string, r stepRead) bool {
	if text == "" || text != v.l.attrText(d, "when") {
		return false
	}
	return !d.WhenEach() || r.byEach && v.l.attrText(d, "for_each") == v.l.attrText(v.reader, "for_each")
}
