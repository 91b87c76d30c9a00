package link

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
)

// find returns the step with the given name: a step of the workflow, or a step around the group. A
// step in a group never has the name of a step around it, so only one step has the name. find returns
// nil if there is none.
func (l nullChecker) find(name string) *decl.Step {
	for w := l.decl; w != nil; w = w.Outer {
		if i, ok := w.Index[name]; ok {
			return w.Steps[i]
		}
	}
	return nil
}

// wordOf returns the first word of a reference to the step with the given name.
func (l nullChecker) wordOf(name string) string {
	if d := l.find(name); d != nil && d.Child != nil && d.Child.Group {
		return "group"
	}
	return "step"
}

// groupGuards returns guards for all expressions inside of a group: nothing in it is evaluated if the
// `when` of the group, or of a group around it, is false. For a workflow it returns nil.
func (l nullChecker) groupGuards(v *nullVisitor) []guard {
	var out []guard
	for w := l.decl; w.Outer != nil; w = w.Outer {
		if when := w.Holder.Attr("when"); when != nil && !when.Bad && when.Compiled != nil {
			out = append(out, v.tested(nil, when.Syntax, when.Range))
		}
	}
	return out
}

// eachText returns the text of the for_each to which each.key in the expression belongs: that of the
// step that contains the expression, or that of the innermost group with for_each. It returns "" if
// there is none.
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

// named sets the fields output and deep. The parameter rest has the parts of the reference after the
// attribute `output`.
func (r *stepRead) named(rest hcl.Traversal) {
	if r.field != "output" || len(rest) == 0 {
		return
	}
	if a, ok := rest[0].(hcl.TraverseAttr); ok {
		r.output, r.deep = a.Name, len(rest) > 1
	}
}

// readDeep warns about a reference to a part of one output of a child run or group, if this output is
// the whole output of a step that may be null.
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

// wholeOutput returns the step of the workflow w whose whole output is the value of the expression e:
// e is step.NAME.output. For any other expression it returns nil.
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
