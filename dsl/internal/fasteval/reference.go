package fasteval

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Context holds the data that an Expr needs. Compile uses all fields except Scope. For an
// evaluation, the caller sets only Evaluator, Self and Scope.
type Context struct {
	Evaluator *eval.Evaluator    // types of the variables and steps
	Self      int                // index of the step that self.* describes
	locals    []*eval.Local      // locals to which the expression refers
	nodes     *int               // number of nodes that were compiled so far
	effort    *metered.Allowance // limit for the cost of compiling
	Scope     *eval.Scope        // values to which expressions can refer; nil while an Expr is compiled
}

// A reference reads one value. The path of the value is known when the definition is linked.
type reference struct {
	root  string           // first name of the reference, such as "var" or "step"
	field string           // attribute after the root or the instance, such as "output"; "" if the field `root` is "var"
	step  int              // index of the step; only if the field `root` is "step"
	key   *reference       // reads the key of the instance; nil = the key is constant, or there is no instance
	name  string           // constant key of the instance; "" = no instance, or the key is not constant
	each  bool             // true = the step has for_each
	path  []value.PathStep // path of the value in its document
	ptr   string           // the field `path` as a JSON pointer

	shape     *Shape // shape of the value; nil = the general evaluator must read the value
	sensitive bool   // true = the variable is declared sensitive
}

// A finding is the value that a reference has read: a part of a document, or a text.
type finding struct {
	raw       []byte // canonical JSON; nil = the value is a string, in the field `text`
	text      string // the value, if the field `raw` is nil
	sensitive bool   // true = the whole value is sensitive
}

// reference compiles a traversal such as step.NAME.output.A. If the general evaluator must read the
// value, the method `reference` returns nil, or a result whose field `shape` is nil.
func (x *Context) reference(t hcl.Traversal) *reference {
	steps := make([]value.PathStep, 0, len(t))
	for _, s := range t[1:] {
		p, ok := pathStepOf(s)
		if !ok {
			return nil
		}
		steps = append(steps, p)
	}
	if len(steps) == 0 {
		return nil
	}
	r := &reference{root: t.RootName()}
	first, rest := steps[0].Name, steps[1:]
	switch r.root {
	case "var":
		seen, ok := x.Evaluator.Vars[first]
		if !ok {
			return nil
		}
		r.sensitive = seen.Sensitive
		r.through(steps, cty.Object(map[string]cty.Type{first: seen.Type}))
		return r
	case "step":
		r.step = -1
		for i := range x.Evaluator.Steps {
			if x.Evaluator.Steps[i].Name == first {
				r.step = i
			}
		}
		if r.step < 0 {
			return nil
		}
		r.each = x.Evaluator.Steps[r.step].Each
		if r.each && len(rest) > 0 {
			r.name, rest = rest[0].Name, rest[1:]
			if !value.IsPlain(r.name) || r.name == "" {
				return nil
			}
		}
		return x.ofStep(r, rest)
	}
	r.field = first
	switch r.root + "." + first {
	case "each.value":
		r.through(rest, cty.DynamicPseudoType)
	case "self.output":
		r.through(rest, x.Evaluator.Steps[x.Self].Out)
	case "self.input":
		if x.Evaluator.Steps[x.Self].Given == nil {
			r.through(rest, x.Evaluator.Steps[x.Self].In)
		}
	case "self.timed_out":
		r.scalar(rest, schema.KindBool)
	case "each.key", "self.key", "self.signal", "failure.step", "failure.code", "failure.message",
		"run.id", "run.workflow", "run.key", "run.started_at":
		r.scalar(rest, schema.KindString)
	}
	return r
}

// ofStep compiles the rest of a reference to a step: it sets r.field, r.path and r.shape. The
// parameter `rest` holds the parts of the reference after the name of the step, or after the key of
// the instance, such as output.id. If `rest` is empty, ofStep returns nil; otherwise it returns r.
func (x *Context) ofStep(r *reference, rest []value.PathStep) *reference {
	if len(rest) == 0 {
		return nil
	}
	r.field = rest[0].Name
	switch r.field {
	case "output":
		r.through(rest[1:], x.Evaluator.Steps[r.step].Out)
	case "status", "started_at":
		r.scalar(rest[1:], schema.KindString)
	case "timed_out":
		r.scalar(rest[1:], schema.KindBool)
	case "attempts":
		r.scalar(rest[1:], schema.KindNumber)
	case "error":
		if len(rest) == 2 && (rest[1].Name == "code" || rest[1].Name == "message") {
			r.field = rest[1].Name
			r.scalar(nil, schema.KindString)
		}
	}
	return r
}

func (r *reference) scalar(rest []value.PathStep, k schema.Kind) {
	if len(rest) == 0 {
		r.shape = &Shape{kind: k}
	}
}

// through sets the fields `path`, `ptr` and `shape` of r. The parameter `path` leads to the value,
// from the top of a document of type ty. If the path does not fit the type, or has a name that is
// not plain (value.IsPlain), through sets nothing.
func (r *reference) through(path []value.PathStep, ty cty.Type) {
	var ptr strings.Builder
	for _, p := range path {
		switch {
		case p.Index < 0 && !value.IsPlain(p.Name):
			return
		case ty == cty.DynamicPseudoType:
		case ty.IsObjectType() && p.Index < 0 && ty.HasAttribute(p.Name):
			ty = ty.AttributeType(p.Name)
		case ty.IsMapType() && p.Index < 0, ty.IsListType() && p.Index >= 0:
			ty = ty.ElementType()
		default:
			return
		}
		ptr.WriteByte('/')
		if p.Index >= 0 {
			ptr.WriteString(strconv.Itoa(p.Index))
		} else {
			ptr.WriteString(value.EscapePointer(p.Name))
		}
	}
	r.path, r.ptr, r.shape = path, ptr.String(), ShapeFrom(ty)
}

func pathStepOf(s hcl.Traverser) (value.PathStep, bool) {
	switch s := s.(type) {
	case hcl.TraverseAttr:
		return value.PathStep{Name: s.Name, Index: -1}, true
	case hcl.TraverseIndex:
		if !s.Key.IsKnown() || s.Key.IsNull() || s.Key.IsMarked() {
			return value.PathStep{}, false
		}
		if s.Key.Type() == cty.String {
			return value.PathStep{Name: s.Key.AsString(), Index: -1}, true
		}
		if s.Key.Type() == cty.Number {
			if n, acc := s.Key.AsBigFloat().Int64(); acc == 0 && n >= 0 && n < 1<<31 {
				return value.PathStep{Index: int(n)}, true
			}
		}
	}
	return value.PathStep{}, false
}

// find reads the value to which r refers. The result `ok` is false if the general evaluator must
// read the value: for example, because the value is missing, or because only a part of it is
// sensitive.
func (r *reference) find(x *Context) (f finding, ok bool) {
	if x.Scope == nil {
		return finding{}, false
	}
	switch r.root {
	case "var":
		f, ok = r.within(x.Scope.Vars)
		f.sensitive = f.sensitive || r.sensitive
		return f, ok
	case "step":
		if inst, ok := r.instance(x); ok {
			return r.ofInstance(&inst)
		}
	case "each":
		switch e := x.Scope.Each; {
		case e == nil:
		case r.field == "key":
			return finding{text: e.Key}, true
		default:
			return r.within(e.Value)
		}
	case "self":
		return r.ofSelf(x.Scope.Self)
	case "failure":
		return r.ofFailure(x.Scope.Failure)
	case "run":
		return r.ofRun(&x.Scope.Run)
	}
	return finding{}, false
}

// instance returns the result of the step to which r refers, or the result of one instance of this
// step. The result `ok` is false if there is no result, or if the general evaluator must find it.
func (r *reference) instance(x *Context) (inst eval.InstanceResult, ok bool) {
	if x.Scope.Step == nil {
		return inst, false
	}
	res := eval.ResultOf(x.Scope, x.Evaluator, r.step)
	if res.Each != r.each {
		return inst, false
	}
	if !r.each {
		return res.One, true
	}
	name := r.name
	if r.key != nil {
		f, ok := r.key.find(x)
		if !ok || f.sensitive {
			return inst, false
		}
		if name = f.text; f.raw != nil {
			if name, ok = plainText(f.raw); !ok {
				return inst, false
			}
		}
	}
	i := sort.Search(len(res.Instances), func(i int) bool { return res.Instances[i].Key >= name })
	if i == len(res.Instances) || res.Instances[i].Key != name || !value.IsPlain(name) {
		return inst, false
	}
	return res.Instances[i], true
}

// plainText returns the text of a JSON string that has only printable ASCII characters and no
// escapes. It returns false for any other value.
func plainText(raw []byte) (string, bool) {
	l := value.Lex(raw)
	if l.Peek() != '"' {
		return "", false
	}
	t, plain, ok := l.Text()
	if !plain || !ok || !l.End() {
		return "", false
	}
	return string(t[1 : len(t)-1]), true
}

func (r *reference) ofInstance(i *eval.InstanceResult) (finding, bool) {
	switch r.field {
	case "output":
		return r.within(i.Output)
	case "status":
		return finding{text: i.Status}, true
	case "code":
		return finding{text: i.ErrorCode}, i.ErrorCode != ""
	case "message":
		return finding{text: i.ErrorText}, i.ErrorCode != ""
	case "attempts":
		return finding{raw: strconv.AppendInt(nil, int64(i.Attempts), 10)}, true
	case "timed_out":
		return finding{raw: strconv.AppendBool(nil, i.TimedOut)}, true
	case "started_at":
		return instant(i.StartedAt)
	}
	return finding{}, false
}

func instant(t time.Time) (finding, bool) {
	if t.IsZero() {
		return finding{}, false
	}
	return finding{text: t.UTC().Format(time.RFC3339Nano)}, true
}

func (r *reference) ofSelf(s *eval.Self) (finding, bool) {
	switch {
	case s == nil:
	case r.field == "input":
		return r.within(s.Input)
	case r.field == "output" && s.OutputKnown:
		return r.within(s.Output)
	case r.field == "key":
		return finding{text: s.Key}, true
	case r.field == "timed_out":
		return finding{raw: strconv.AppendBool(nil, s.TimedOut)}, true
	case r.field == "signal":
		return finding{text: s.Signal}, s.Signal != ""
	}
	return finding{}, false
}

func (r *reference) ofFailure(f *eval.Failure) (finding, bool) {
	switch {
	case f == nil:
	case r.field == "step":
		return finding{text: f.Step}, true
	case r.field == "code":
		return finding{text: f.Code}, true
	case r.field == "message":
		return finding{text: f.Message}, true
	}
	return finding{}, false
}

func (r *reference) ofRun(i *eval.RunInfo) (finding, bool) {
	switch r.field {
	case "id":
		return finding{text: i.ID}, true
	case "workflow":
		return finding{text: i.Workflow}, true
	case "key":
		return finding{text: i.Key}, i.Key != ""
	case "started_at":
		return instant(i.StartedAt)
	}
	return finding{}, false
}

// within reads the value at r.path in the document v. It returns false if v has no such value,
// or if the general evaluator must read the value.
func (r *reference) within(v value.Value) (finding, bool) {
	sensitive, ok := value.MarksAt(v, r.ptr)
	if !ok {
		return finding{}, false
	}
	raw, ok := value.PartOf(v, r.path)
	return finding{raw: raw, sensitive: sensitive}, ok
}
