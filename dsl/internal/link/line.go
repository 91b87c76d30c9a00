package link

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// lines implements noun.Lines for one workflow.
type lines struct {
	m  *decl.Module
	w  *decl.Workflow
	ev *eval.Evaluator
}

// lineName is the file name that messages show for a line of the console.
const lineName = "<console>"

// Evaluate evaluates the expression in text and returns its value, or errors. Workflow.Evaluate
// calls this method.
func (l lines) Evaluate(text string, s *eval.Scope) (value.Value, diag.Diagnostics) {
	r := &report.Reporter{Sources: maps.Clone(l.m.Sources), Blocks: l.m.Blocks}
	r.Sources[lineName] = []byte(text)
	e := syntax.Reader{Reporter: r}.Line([]byte(text), lineName)
	if e == nil || e.Bad {
		return value.Value{}, r.Finish()
	}
	c := l.m.CompileLine(r, l.w, e, s.Step != nil)
	if c == nil || e.Bad {
		return value.Value{}, r.Finish()
	}
	v, ok := l.ev.Line(c, s, r)
	if !ok {
		return value.Value{}, r.Finish()
	}
	out, err := value.Encode(v, false)
	if err != nil {
		r.Errorf(e.Range, "Cannot show the value", "%s.", upperFirst(err.Error()))
	}
	return out, r.Finish()
}

// unfinished finds the reference or the name of a function at the end of a text, such as
// step.ship["berlin"].out.
var unfinished = regexp.MustCompile(`[A-Za-z_][\w-]*(?:\["[^"]*"\]|\.[\w-]*)*$`)

// index finds the key in a reference to an instance, such as ["berlin"].
var index = regexp.MustCompile(`\["[^"]*"\]`)

// Complete returns the index where the unfinished reference or function name at the end of `text`
// begins, and the words that may replace it. If inRun is true, the words may refer to steps and to
// run.*. Workflow.Complete calls this method.
func (l lines) Complete(text string, inRun bool) (from int, words []string) {
	from = len(text)
	if at := unfinished.FindStringIndex(text); at != nil {
		from = at[0]
	}
	head, last := "", text[from:]
	if i := strings.LastIndexByte(last, '.'); i >= 0 {
		head, last = last[:i+1], last[i+1:]
	}
	var names []string
	if head == "" {
		names = l.roots(inRun)
	} else {
		names = l.members(strings.Split(strings.TrimSuffix(index.ReplaceAllString(head, ""), "."), "."), inRun)
	}
	for _, name := range names {
		if strings.HasPrefix(name, last) {
			words = append(words, head+name)
		}
	}
	slices.Sort(words)
	return from, words
}

// roots returns the texts with which a reference or a function call can begin, such as "var." and
// "upper(". If inRun is true, the texts include "step.", "group." and "run.".
func (l lines) roots(inRun bool) []string {
	names := []string{"var.", "local."}
	if inRun {
		names = append(names, "step.", "group.", "run.")
	}
	for name := range l.ev.Funcs {
		names = append(names, name+"(")
	}
	return names
}

// members returns the names that may follow after a reference and a dot. The parameter `path` has
// the names of the reference, such as `step`, `ship` and `output`, without keys of instances.
func (l lines) members(path []string, inRun bool) []string {
	root := path[0]
	switch {
	case root == "local" && len(path) == 1:
		return sorted.Keys(l.w.Locals)
	case root == "var" && len(path) == 1:
		// The name of a hidden variable has a dot, such as each.key. No expression can name it.
		return slices.DeleteFunc(sorted.Keys(l.ev.Vars), func(name string) bool { return strings.Contains(name, ".") })
	case root == "var":
		return attributes(l.ev.Vars[path[1]].Type, path[2:])
	case root == "run" && inRun && len(path) == 1:
		return slices.DeleteFunc(slices.Clone(syntax.RootFields[root]), func(name string) bool {
			_, taken := l.ev.Vars["run."+name] // the run of a group has only those attributes that the group uses
			return name == "status" || l.w.Outer != nil && !taken
		})
	case (root == "step" || root == "group") && inRun:
		return l.stepMembers(root == "group", path[1:])
	}
	return nil
}

// stepMembers returns the names that may follow after a reference to a step and a dot. If the
// parameter `group` is true, the reference begins with the word `group`. If it is false, the
// reference begins with the word `step`. The parameter `path` has the names of the reference after
// this word, such as `ship` and `output`.
func (l lines) stepMembers(group bool, path []string) (names []string) {
	isGroup := func(i int) bool { return l.w.Steps[i].Child != nil && l.w.Steps[i].Child.Group }
	if len(path) == 0 {
		for i, s := range l.ev.Steps {
			if isGroup(i) != group {
				continue
			}
			if s.Each {
				names = append(names, s.Name+`["`)
			} else {
				names = append(names, s.Name+".")
			}
		}
		return names
	}
	i, ok := l.w.Index[path[0]]
	switch {
	case !ok || i >= len(l.ev.Steps) || isGroup(i) != group:
		return nil
	case len(path) == 1 && group:
		return syntax.GroupFields
	case len(path) == 1:
		return syntax.StepFields
	case path[1] == "output":
		return attributes(l.ev.Steps[i].Out, path[2:])
	case path[1] == "error":
		return attributes(eval.ErrorType, path[2:])
	}
	return nil
}

// attributes returns the names of the attributes at a path inside of a type. It returns nil if
// there is no object at the path.
func attributes(ty cty.Type, path []string) []string {
	for _, name := range path {
		if ty == cty.NilType || !ty.IsObjectType() || !ty.HasAttribute(name) {
			return nil
		}
		ty = ty.AttributeType(name)
	}
	if ty == cty.NilType || !ty.IsObjectType() {
		return nil
	}
	return sorted.Keys(ty.AttributeTypes())
}
