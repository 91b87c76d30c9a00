package decl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// take adds the value t to the values that the group w takes from outside of the group. The
// parameter `name` is the name of the hidden variable that holds the value. If w already takes this
// value, the method adds only the attributes in t.fields to the attributes that earlier references
// use. If t or an earlier reference uses the whole value, w takes the whole value.
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
// module, and the values that the group takes from outside of the group.
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

// expression returns the expression that gives the value t. The run that contains the group
// evaluates this expression. If the group uses only some attributes of a step, the value of the
// expression is an object with these attributes.
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

// inside returns the group of the workflow w that contains a step with the given name, directly or
// in an inner group. It returns nil if no group of w contains such a step.
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

// hint returns advice about a reference from outside of a group to a step in the group. It returns
// "" if no group of w contains a step with the given name.
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

// referenceTo returns the expression ROOT.NAME. The parameter `at` is the position of the
// expression in messages.
func referenceTo(at hcl.Range, root, name string) *eval.Expr {
	return &eval.Expr{Range: at, Syntax: &hclsyntax.ScopeTraversalExpr{SrcRange: at, Traversal: hcl.Traversal{
		hcl.TraverseRoot{Name: root, SrcRange: at}, hcl.TraverseAttr{Name: name, SrcRange: at},
	}}}
}

// rename replaces the first two words of the reference t with ROOT.NAME.
func rename(t hcl.Traversal, root, name string) {
	t[0] = hcl.TraverseRoot{Name: root, SrcRange: t[0].SourceRange()}
	t[1] = hcl.TraverseAttr{Name: name, SrcRange: t[1].SourceRange()}
}

// fieldsOf returns the attribute that the reference t to a step uses. It returns nil if t uses the
// whole value of the step.
func fieldsOf(t hcl.Traversal, s *Step) map[string]hcl.Range {
	if s.Each() || len(t) < 3 {
		return nil
	}
	if attr, ok := t[2].(hcl.TraverseAttr); ok {
		return map[string]hcl.Range{attr.Name: t.SourceRange()}
	}
	return nil
}

// outerVariable looks for a variable with the given name in the workflows that contain the group w,
// innermost first. It returns nil if no workflow has such a variable, or if the group has the
// variable already.
func (w *Workflow) outerVariable(name string) *Variable {
	if w.Variables[name] != nil {
		return nil
	}
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		if v := outer.Variables[name]; v != nil {
			return v
		}
	}
	return nil
}

// outerLocal looks for a local with the given name in the workflows that contain the group w. It
// returns the workflow that declares the local, or nil if there is none. A local outside of
// workflows does not count.
func (w *Workflow) outerLocal(name string) *Workflow {
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		if l := outer.Locals[name]; l != nil && !l.File {
			return outer
		}
	}
	return nil
}

// outerStep looks for a step with the given name in the workflows that contain the group w. It
// returns the workflow that has the step, or nil if there is none.
func (w *Workflow) outerStep(name string) *Workflow {
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		if _, ok := outer.Index[name]; ok {
			return outer
		}
	}
	return nil
}

// EachAround returns the innermost group with for_each that contains the steps of w. These steps
// can use `each` of this group, except a step that has for_each itself. EachAround returns nil if
// there is no such group.
func (w *Workflow) EachAround() *Workflow {
	for ; w.Outer != nil; w = w.Outer {
		if w.Holder.Each() {
			return w
		}
	}
	return nil
}

// keyBit returns the bit of the group w in eval.Compiled.GroupKeys.
func (w *Workflow) keyBit() uint64 {
	depth := 0
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		depth++
	}
	return 1 << depth
}

// GroupsWithoutKey returns the groups that have for_each, contain the steps of w, and whose
// each.key the expression c does not use. The innermost group comes first. The parameter c must be
// an expression of w.
func (w *Workflow) GroupsWithoutKey(c *eval.Compiled) []*Workflow {
	var out []*Workflow
	for g := w.EachAround(); g != nil; g = g.Outer.EachAround() {
		if c.GroupKeys&g.keyBit() == 0 {
			out = append(out, g)
		}
	}
	return out
}

// StepAround returns NAME if the name of a hidden variable is step.NAME or group.NAME. Such a
// variable holds the value of a step or group outside of the group that has the variable. For any
// other name, StepAround returns false.
func StepAround(variable string) (string, bool) {
	word, name, ok := strings.Cut(variable, ".")
	return name, ok && (word == "step" || word == "group")
}

// The method `around` handles the reference t in a group, if t refers to a value that is declared
// outside of the group. It adds a hidden variable to the group, and changes t to a reference to
// this variable. For a line of the console it adds no variable: if the group does not take the
// value already, it reports an error. The result `handled` is false if t refers to a value of the
// group itself, or to no value. The result `ok` is false after an error.
func (d referenceDecoder) around(c *eval.Compiled, t hcl.Traversal, name string, ns *names, a allow) (ok, handled bool) {
	g := ns.of
	if g == nil || g.Outer == nil {
		return false, false
	}
	at := t.SourceRange()
	if a&allowAround != 0 {
		a = a&^allowAround | allowStep
	}
	value := &taken{at: at, root: t.RootName(), name: name}
	key := value.root + "." + name
	switch value.root {
	case "var":
		v := g.outerVariable(name)
		if a&allowVar == 0 || v == nil {
			return false, false
		}
		if ns.inLine {
			return false, d.notInGroup(g, value)
		}
		own := *v
		own.Validations = nil // the values were checked when the outermost run started
		g.Variables[name], key = &own, name
	case "local":
		w := g.outerLocal(name)
		if a&allowLocal == 0 || ns.locals[name] != nil || w == nil {
			return false, false
		}
		used := &eval.Compiled{}
		if !d.refLocal(w.Locals[name], at, w.names(), a, used) {
			return false, true
		}
		c.GroupKeys |= used.GroupKeys
	case "each":
		if ok, handled := d.eachOfGroup(c, at, name, ns, a); !ok {
			return false, handled
		}
	case "run":
		if a&allowRun == 0 || !slices.Contains(syntax.RootFields["run"], name) {
			return false, false
		}
	case "step", "group":
		w := g.outerStep(name)
		if _, own := ns.index[name]; own || a&allowStep == 0 || w == nil {
			return false, false
		}
		if !d.stepAround(t, name, g, w, a) {
			return false, true
		}
		value.fields = fieldsOf(t, w.Steps[w.Index[name]])
	default:
		return false, false
	}
	if !ns.inLine {
		g.take(key, value)
	} else if !g.holds(key, value) {
		return false, d.notInGroup(g, value)
	}
	rename(t, "var", key)
	c.Vars = true
	return true, true
}

// holds reports whether the group w already takes the value t from outside of the group, with all
// attributes that t uses. The parameter `name` is the name of the hidden variable for the value.
func (w *Workflow) holds(name string, t *taken) bool {
	old, ok := w.taken[name]
	if !ok || old.fields == nil {
		return ok
	}
	for f := range t.fields {
		if _, used := old.fields[f]; !used {
			return false
		}
	}
	return true
}

// notInGroup reports an error for a line of the console that refers to the value t, and returns
// true. The run of the group g does not have the value, because no expression in the group uses it.
func (d referenceDecoder) notInGroup(g *Workflow, t *taken) bool {
	what := t.root + "." + t.name
	for _, f := range sorted.Keys(t.fields) {
		what += "." + f
	}
	d.Errorf(t.at, "No value in the run of a group", "The run of group %q does not have %s: it has only those values around the group which the group uses.", g.Holder.Name, what)
	return true
}

// eachOfGroup checks the reference each.NAME in a group. The result `ok` is true if a group gives
// `each` its value here. If NAME is `key`, eachOfGroup also adds this group to c.GroupKeys. The
// result `handled` is true if `ok` is true, or if eachOfGroup has reported an error.
func (d referenceDecoder) eachOfGroup(c *eval.Compiled, at hcl.Range, name string, ns *names, a allow) (ok, handled bool) {
	holder := ns.of.EachAround()
	if ns.hasEach || a&(allowEach|allowStep) == 0 || holder == nil {
		return false, false
	}
	if !slices.Contains(syntax.RootFields["each"], name) {
		d.Errorf(at, "Unsupported attribute", "%q has no attribute %q.%s", "each", name, diag.Choices(name, syntax.RootFields["each"]))
		return false, true
	}
	if name == "key" {
		c.GroupKeys |= holder.keyBit()
	}
	return true, true
}

// stepAround checks a reference in the group g to a step or group outside of g. The parameter `t`
// is the reference. The parameter `w` is the workflow that has the step or group with the given
// name; w contains g. After an error stepAround returns false.
func (d referenceDecoder) stepAround(t hcl.Traversal, name string, g, w *Workflow, a allow) bool {
	i := w.Index[name]
	for inner := g; inner != w; inner = inner.Outer {
		if inner.Outer == w && inner.Holder.Name == name {
			d.Errorf(t.SourceRange(), "Group refers to itself", "Group %q cannot use its own result here, because it ends after its steps.", name)
			return false
		}
	}
	copied := slices.Clone(t) // a copy, because refStep may change the reference
	return d.refStep(&eval.Compiled{StepRefs: map[int]hcl.Range{i: {}}}, copied, name, t.SourceRange(), w.names(), a)
}
