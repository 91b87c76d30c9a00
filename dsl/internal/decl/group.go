package decl

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A group is a step that starts a child run, together with the workflow of this child. The steps of
// the group are the steps of this workflow. What they use of their surroundings becomes a hidden
// variable of this workflow: the step passes its value to the child.

// A groupDecoder reads group blocks.
type groupDecoder struct{ *decoder }

// group reads a group block of the workflow w. It returns the step that starts the group.
func (d groupDecoder) group(w *Workflow, b *syntax.Block) *Step {
	inner := &Workflow{
		Name: w.Name + "." + b.Label, Where: b.DefRange, Block: b, Mode: w.Mode,
		Variables: map[string]*Variable{}, Locals: map[string]*eval.Local{}, Index: map[string]int{}, outputAt: map[string]hcl.Range{},
		Outer: w, taken: map[string]*taken{},
	}
	for n, v := range d.m.Variables {
		inner.Variables[n] = v
	}
	for n, l := range d.m.locals {
		inner.Locals[n] = l
	}
	s := &Step{
		Name: b.Label, Where: b.DefRange, Block: b, Kind: StepChild, After: map[int]hcl.Range{}, OutputType: cty.NilType,
		InputAt: b.DefRange, ActionAt: b.DefRange, Catch: b.One("catch"),
		Child: &Child{Name: inner.Name, Where: b.DefRange, Workflow: inner, Group: true},
	}
	inner.Holder = s
	d.content(inner, b)
	if len(inner.Steps) == 0 && !b.Broken {
		d.Errorf(b.DefRange, "Group without steps", "Group %q has no step, so it does nothing. Write a step block in it, or remove it.", b.Label)
	}
	return s
}

// shadows reports steps and locals of a group that have the name of a step or a local around the
// group. A reference to such a name could mean both.
func (d groupDecoder) shadows(w *Workflow) {
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		for _, s := range w.Steps {
			if i, ok := outer.Index[s.Name]; ok {
				d.Errorf(s.Where, "Name used around the group", "Around this group, at %s, there is a step or group with the name %q already. Use another name here, because steps of a group can refer to steps around it.",
					report.Range(outer.Steps[i].Where), s.Name)
			}
		}
		for _, l := range w.OwnLocals {
			if first, ok := outer.Locals[l.Name]; ok && !first.File {
				d.Errorf(l.Where, "Name used around the group", "Around this group, at %s, there is a local value with the name %q already. Use another name here.", report.Range(first.Where), l.Name)
			}
		}
	}
}

// settings gives a group the settings of the workflow around it: the defaults in its retry block,
// and the deadline of its compensation. If a setting has references, its value is passed like any
// other value from the surroundings.
func (d groupDecoder) settings(w *Workflow) {
	pass := func(name string, e *eval.Expr) *eval.Expr {
		if e == nil || e.Bad || e.Compiled == nil || e.Compiled.Constant != nil {
			return e
		}
		w.take(name, &taken{expr: e})
		return referenceTo(e.Range, "var", name)
	}
	w.CompensationDeadline = pass("compensation.deadline", w.Outer.CompensationDeadline)
	if r := w.Outer.Retry; r != nil {
		own := *r
		own.Attrs = map[string]*eval.Expr{}
		for _, name := range sorted.Keys(r.Attrs) {
			own.Attrs[name] = pass("retry."+name, r.Attrs[name])
		}
		w.Retry = &own
	}
}

// A taken is a value that a group takes from its surroundings. It becomes a hidden variable.
type taken struct {
	at     hcl.Range            // place of the first reference
	root   string               // first name of the reference, such as "step"
	name   string               // second name of the reference
	fields map[string]hcl.Range // used attributes of a step; nil = the whole value is used
	expr   *eval.Expr           // expression of the surroundings; nil = root.name
}

// take makes a hidden variable with this name. If the variable exists already, take adds the
// attributes that t uses.
func (w *Workflow) take(name string, t *taken) {
	old, ok := w.taken[name]
	if !ok {
		w.taken[name] = t
		if w.Variables[name] == nil {
			w.Variables[name] = &Variable{Name: name, Where: t.at, Type: cty.DynamicPseudoType, TypeText: "any", Nullable: true, Hidden: true}
		}
		return
	}
	if old.fields == nil || t.fields == nil {
		old.fields = nil
		return
	}
	for f, at := range t.fields {
		old.fields[f] = at
	}
}

// passed returns the values that the step of a group passes to the group: the variables of the
// module, and what the group takes from its surroundings.
func (w *Workflow) passed(module map[string]*Variable) []syntax.Arg {
	var out []syntax.Arg
	for _, name := range sorted.Keys(module) {
		out = append(out, syntax.Arg{Name: name, Where: w.Where, Expr: referenceTo(w.Where, "var", name)})
	}
	for _, name := range sorted.Keys(w.taken) {
		out = append(out, syntax.Arg{Name: name, Where: w.taken[name].at, Expr: w.taken[name].expression()})
	}
	return out
}

// expression returns the expression of the value, in the surroundings of the group. If only some
// attributes of a step are used, it is an object with these attributes.
func (t *taken) expression() *eval.Expr {
	if t.expr != nil {
		return t.expr
	}
	if t.fields == nil {
		return referenceTo(t.at, t.root, t.name)
	}
	cons := &hclsyntax.ObjectConsExpr{SrcRange: t.at, OpenRange: t.at}
	for _, f := range sorted.Keys(t.fields) {
		cons.Items = append(cons.Items, hclsyntax.ObjectConsItem{
			KeyExpr: &hclsyntax.LiteralValueExpr{Val: cty.StringVal(f), SrcRange: t.at},
			ValueExpr: &hclsyntax.ScopeTraversalExpr{SrcRange: t.at, Traversal: hcl.Traversal{
				hcl.TraverseRoot{Name: t.root, SrcRange: t.at}, hcl.TraverseAttr{Name: t.name, SrcRange: t.at}, hcl.TraverseAttr{Name: f, SrcRange: t.at},
			}},
		})
	}
	return &eval.Expr{Range: t.at, Syntax: cons}
}

// inside returns the group in which a step with this name stands, below the workflow w. It returns
// nil if no group has such a step.
func (w *Workflow) inside(name string) *Step {
	for _, s := range w.Steps {
		if s.Child == nil || !s.Child.Group || s.Child.Workflow == nil {
			continue
		}
		inner := s.Child.Workflow
		if _, ok := inner.Index[name]; ok || inner.inside(name) != nil {
			return s
		}
	}
	return nil
}

// hint returns advice about a step that is inside of a group and cannot be seen from outside; "" if
// no group has a step with this name.
func (w *Workflow) hint(name string) string {
	if w == nil {
		return ""
	}
	g := w.inside(name)
	if g == nil {
		return ""
	}
	return fmt.Sprintf(" It is inside of group %q. From outside only the outputs of a group can be used: write output \"NAME\" { value = step.%s.output... } in the group, and group.%s%s.output.NAME here.", g.Name, name, g.Name, instanceKey(g))
}
