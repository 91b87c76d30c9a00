package dsl

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// nullReads warns where the output of a step that may have none is read
// without a guard: an attribute of null fails the reader.
func (l *workflowLinker) nullReads() {
	for i, s := range l.steps {
		whens := l.whenText(s.decl)
		for _, name := range sortedKeys(s.decl.block.attrs) {
			l.nullRead(s.decl.block.attrs[name], i, whens)
		}
		for _, a := range s.decl.input {
			l.nullRead(a.expr, i, whens)
		}
		for _, c := range append(append([]*conditionDecl(nil), s.decl.pre...), s.decl.post...) {
			l.nullRead(c.condition, i, whens)
		}
		if u := s.decl.undo; u != nil {
			for _, a := range u.input {
				l.nullRead(a.expr, i, whens)
			}
		}
	}
	for _, loc := range l.decl.ownLocals {
		l.nullRead(loc.expr, -1, "")
	}
	for _, o := range l.decl.outputs {
		l.nullRead(o.value, -1, "")
	}
}

// mayBeNull says why the output of a step can be null; "" if it cannot.
func (l *workflowLinker) mayBeNull(i int) string {
	d := l.steps[i].decl
	switch {
	case d.attr("when") != nil:
		return "is skipped when its condition is false"
	case d.catch != nil && d.catch.attr("output") == nil:
		return "has a catch without output"
	case d.attr("max_failures") != nil:
		return "tolerates failed instances"
	}
	return ""
}

func (l *workflowLinker) whenText(d *stepDecl) string {
	e := d.attr("when")
	if e == nil {
		return ""
	}
	return l.sourceText(e.rng)
}

func (l *workflowLinker) sourceText(r hcl.Range) string {
	src := l.sources[r.Filename]
	if r.Start.Byte < 0 || r.End.Byte > len(src) || r.Start.Byte > r.End.Byte {
		return ""
	}
	return string(withoutSpace(src[r.Start.Byte:r.End.Byte]))
}

// withoutSpace removes white space, so that the same condition compares
// equal however it is laid out.
func withoutSpace(b []byte) []byte {
	var out []byte
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			out = append(out, c)
		}
	}
	return out
}

func (l *workflowLinker) nullRead(e *expr, reader int, when string) {
	if e == nil || e.bad || e.comp == nil || len(e.comp.direct) == 0 {
		return
	}
	v := &nullVisitor{l: l, reader: reader, when: when}
	hclsyntax.Walk(e.syn, v)
}

// A nullVisitor finds reads of outputs outside of guards: try(), can(), and
// conditions that test the step's status or repeat its when.
type nullVisitor struct {
	l      *workflowLinker
	reader int
	when   string
	guards []guard
}

// A guard is an expression inside which some steps are safe to read.
type guard struct {
	node  hclsyntax.Node
	all   bool
	steps map[string]bool
	whens map[string]bool
}

// Enter opens guards and looks at references.
func (v *nullVisitor) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := bare(n).(type) {
	case *hclsyntax.FunctionCallExpr:
		if n.Name == "try" || n.Name == "can" {
			v.guards = append(v.guards, guard{node: n, all: true})
		}
	case *hclsyntax.ConditionalExpr:
		v.guards = append(v.guards, v.tested(n, n.Condition))
	case *hclsyntax.BinaryOpExpr:
		if n.Op == hclsyntax.OpLogicalAnd || n.Op == hclsyntax.OpLogicalOr {
			v.guards = append(v.guards, v.tested(n, n.LHS))
		}
	case *hclsyntax.ForExpr:
		if n.CondExpr != nil {
			v.guards = append(v.guards, guard{node: n, all: true}) // the condition sees each instance
		}
	case *hclsyntax.ScopeTraversalExpr:
		v.read(n.Traversal)
	}
	return nil
}

// Exit closes guards.
func (v *nullVisitor) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if k := len(v.guards); k > 0 && v.guards[k-1].node == bare(n) {
		v.guards = v.guards[:k-1]
	}
	return nil
}

func (v *nullVisitor) tested(n hclsyntax.Node, cond hclsyntax.Expression) guard {
	g := guard{node: n, steps: map[string]bool{}, whens: map[string]bool{string(withoutSpace([]byte(v.l.sourceText(cond.Range())))): true}}
	for _, t := range cond.Variables() {
		if name, field := stepField(t); field == "status" || field == "error" || field == "output" {
			g.steps[name] = true
		}
	}
	return g
}

func stepField(t hcl.Traversal) (step, field string) {
	if t.RootName() != "step" || len(t) < 3 {
		return "", ""
	}
	name, ok := t[1].(hcl.TraverseAttr)
	if !ok {
		return "", ""
	}
	attr, ok := t[len(t)-1].(hcl.TraverseAttr)
	for _, s := range t[2:] {
		if a, isAttr := s.(hcl.TraverseAttr); isAttr && contains(stepFields, a.Name) {
			return name.Name, a.Name
		}
	}
	if !ok {
		return "", ""
	}
	return name.Name, attr.Name
}

func (v *nullVisitor) read(t hcl.Traversal) {
	name, field := stepField(t)
	if field != "output" {
		return
	}
	if a, ok := t[len(t)-1].(hcl.TraverseAttr); ok && a.Name == "output" {
		return // the output as a whole may be null
	}
	i, ok := v.l.decl.index[name]
	if !ok {
		return
	}
	why := v.l.mayBeNull(i)
	if why == "" {
		return
	}
	when := v.l.whenText(v.l.steps[i].decl)
	if when != "" && when == v.when && v.l.steps[i].decl.catch == nil {
		return
	}
	for _, g := range v.guards {
		if g.all || g.steps[name] || when != "" && g.whens[when] {
			return
		}
	}
	v.l.warnf(t.SourceRange(), "Output may be null",
		"Step %q %s; then its output is null and reading an attribute fails. Use try(%s, null), or test step.%s.status.",
		name, why, traversalText(t), name)
}
