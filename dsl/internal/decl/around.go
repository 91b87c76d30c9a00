package decl

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// around checks a reference t in a group to something around the group. It makes a hidden variable
// of the group, and lets t refer to this variable. The result handled is false if t refers to
// something of the group itself, or to nothing. The result ok is false after an error.
func (d referenceDecoder) around(c *eval.Compiled, t hcl.Traversal, name string, ns *names, a allow) (ok, handled bool) {
	g := ns.of
	if g == nil || g.Outer == nil {
		return false, false
	}
	at := t.SourceRange()
	value := &taken{at: at, root: t.RootName(), name: name}
	key := value.root + "." + name
	switch value.root {
	case "var":
		v := g.outerVariable(name)
		if a&allowVar == 0 || v == nil {
			return false, false
		}
		own := *v
		own.Validations = nil // the values were checked when the outermost run started
		g.Variables[name], key = &own, name
	case "local":
		w := g.outerLocal(name)
		if a&allowLocal == 0 || ns.locals[name] != nil || w == nil {
			return false, false
		}
		if !d.refLocal(w.Locals[name], at, w.names(), a, &eval.Compiled{}) {
			return false, true
		}
	case "each":
		if ns.hasEach || a&(allowEach|allowStep) == 0 || !g.eachAround() || !slices.Contains(syntax.RootFields["each"], name) {
			return false, false
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
		value.root, key = "step", "step."+name
		value.fields = fieldsOf(t, w.Steps[w.Index[name]])
	default:
		return false, false
	}
	g.take(key, value)
	rename(t, "var", key)
	c.Vars = true
	return true, true
}

// rename lets the reference t begin with ROOT.NAME.
func rename(t hcl.Traversal, root, name string) {
	t[0] = hcl.TraverseRoot{Name: root, SrcRange: t[0].SourceRange()}
	t[1] = hcl.TraverseAttr{Name: name, SrcRange: t[1].SourceRange()}
}

// fieldsOf returns the attribute of a step that the reference t uses. It returns nil if t uses the
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

// stepAround checks a reference t in group g to a step or group of the workflow w around g.
func (d referenceDecoder) stepAround(t hcl.Traversal, name string, g, w *Workflow, a allow) bool {
	i := w.Index[name]
	for inner := g; inner != w; inner = inner.Outer {
		if inner.Outer == w && inner.Holder.Name == name {
			d.Errorf(t.SourceRange(), "Group refers to itself", "Group %q cannot use its own result here, because it ends after its steps.", name)
			return false
		}
	}
	copied := slices.Clone(t) // refStep renames the reference
	return d.refStep(&eval.Compiled{Direct: map[int]hcl.Range{i: {}}}, copied, name, t.SourceRange(), w.names(), a)
}

// outerVariable returns the variable with this name that a workflow around the group declares. It
// returns nil if there is none, or if the group has the variable already.
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

// outerLocal returns the workflow around the group that has a local value with this name; nil = none.
func (w *Workflow) outerLocal(name string) *Workflow {
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		if l := outer.Locals[name]; l != nil && !l.File {
			return outer
		}
	}
	return nil
}

// outerStep returns the workflow around the group that has a step with this name; nil = none.
func (w *Workflow) outerStep(name string) *Workflow {
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		if _, ok := outer.Index[name]; ok {
			return outer
		}
	}
	return nil
}

// eachAround reports whether the group, or a group around it, has for_each.
func (w *Workflow) eachAround() bool {
	for ; w.Outer != nil; w = w.Outer {
		if w.Holder.Each() {
			return true
		}
	}
	return false
}

// dependsAround makes the group w, or a group around it, wait for a step outside that a step of w
// names in depends_on. It returns false if there is no such step outside.
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
