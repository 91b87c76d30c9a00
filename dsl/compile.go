package dsl

import (
	"fmt"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// An argumentLinker links the arguments of blocks: their types, values and evaluation.
type argumentLinker struct{ *workflowLinker }

// exprFunc makes a function of a run from an expression, nil from nil. What is
// known already is checked and converted here, once.
func exprFunc[T any](l *workflowLinker, e *eval.Expr, name string, want cty.Type, conv func(cty.Value) (T, error)) func(*eval.Scope) (T, error) {
	if e == nil {
		return nil
	}
	v := l.check(e)
	bad := func(err error) {
		l.Invalid(e.Range, name, err)
	}
	raw, _ := v.UnmarkDeep()
	switch {
	case e.Bad || raw.Type() == cty.DynamicPseudoType && !raw.IsKnown():
	case raw.IsWhollyKnown():
		if _, err := conv(v); err != nil {
			bad(err)
		}
	case !value.Assignable(raw.Type(), want):
		bad(fmt.Errorf("%s is required, this is %s", want.FriendlyName(), raw.Type().FriendlyName()))
	}
	ev, self, c := l.ev, max(l.cur, 0), e.Compiled
	if c != nil && c.Constant != nil {
		val, err := conv(*c.Constant)
		return func(*eval.Scope) (T, error) { return val, err }
	}
	at, d := report.Range(e.Range), l.direct(e, anything)
	return func(s *eval.Scope) (T, error) {
		if v, ok := d.scalar(&sight{ev: ev, s: s, self: self}); ok {
			if out, err := conv(v); err == nil {
				return out, nil
			}
		}
		v, err := ev.Run(c, s, self)
		if err != nil {
			var zero T
			return zero, err
		}
		out, err := conv(v)
		if err != nil {
			return out, fmt.Errorf("%s: %s: %w", at, name, err)
		}
		return out, nil
	}
}

// valueFunc makes a ValueFunc from an expression; whole marks the result as
// sensitive.
func (l argumentLinker) valueFunc(e *eval.Expr, name string, whole bool, accept func(cty.Value) (cty.Value, error)) ValueFunc {
	general := exprFunc(l.workflowLinker, e, name, cty.DynamicPseudoType, func(v cty.Value) (value.Value, error) {
		if accept != nil {
			var err error
			if v, err = accept(v); err != nil {
				return value.Value{}, err
			}
		}
		if whole {
			v = v.Mark(value.SensitiveMark{})
		}
		return value.Encode(v, false)
	})
	if accept != nil {
		return general
	}
	d, ev, self := l.direct(e, anything), l.ev, max(l.cur, 0)
	if d == nil || e.Compiled.Constant != nil {
		return general
	}
	return func(s *eval.Scope) (value.Value, error) {
		if v, ok := d.value(&sight{ev: ev, s: s, self: self}, whole); ok {
			return v, nil
		}
		return general(s)
	}
}

// An argument is one attribute of an input or config block.
type argument struct {
	spec   *argSpec
	name   string
	path   []byte         // JSON pointer
	c      *eval.Compiled // nil: it was not written and has a default
	at     diag.Range
	direct *direct // nil: the evaluator evaluates it
	ready  *ready  // its value, if that is known
	preset *ready  // its default; nil = none
}

// A ready is the value of an argument that depends on nothing, as it is
// written; without JSON the argument is left out.
type ready struct {
	json      []byte
	sensitive []string // pointers from the object of all arguments
	secrets   []value.Secret
}

// arguments are the compiled attributes of an input or config block.
type arguments struct {
	ev       *eval.Evaluator
	self     int
	list     []argument // by name; also those not written that have a default
	usesSelf bool
	konst    *value.Value
	room     int // bytes to make room for
}

// arguments checks what is written against what is taken. byKey says that
// arguments which depend on self.output may be left out.
func (l argumentLinker) arguments(specs map[string]*argSpec, args []arg, at hcl.Range, title string, byKey bool) *arguments {
	out := &arguments{ev: l.ev, self: max(l.cur, 0)}
	written := map[string]bool{}
	for _, a := range args {
		written[a.name] = true
		spec, ok := specs[a.name]
		if !ok {
			l.Errorf(a.where, "Unsupported argument", "%s has no argument %q.%s", upperFirst(title), a.name, diag.DidYouMean(a.name, sorted.Keys(specs)))
			l.check(a.expr)
			continue
		}
		l.argument(spec, a, title)
		plainSecrets(l.Reporter, spec, a, title)
		if a.expr.Bad || a.expr.Compiled == nil {
			continue
		}
		if a.expr.Compiled.SelfOutput {
			out.usesSelf = true
			if byKey && spec.required() {
				l.Errorf(a.where, "Argument cannot be left out",
					"The undo is called by key when the step's output is not known; then this argument is left out, but %s requires it.", title)
			}
		}
		out.list = append(out.list, l.compiledArgument(spec, a))
	}
	for _, n := range sorted.Keys(specs) {
		switch spec := specs[n]; {
		case written[n]:
		case spec.required():
			l.Errorf(at, "Missing required argument", "%s requires argument %q (%s)%s.", upperFirst(title), n, value.TypeText(spec.typ), docText(spec.field.Doc))
		case spec.def != cty.NilVal:
			out.list = append(out.list, argument{spec: spec, name: n, ready: spec.preset()})
		}
	}
	sort.Slice(out.list, func(i, j int) bool { return out.list[i].name < out.list[j].name })
	out.fold()
	return out
}

func docText(s string) string {
	if s == "" {
		return ""
	}
	return ": " + trimStop(s)
}

func trimStop(s string) string {
	for len(s) > 0 && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

func upperFirst(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

func (l argumentLinker) argument(spec *argSpec, a arg, title string) {
	v := l.check(a.expr)
	if a.expr.Bad {
		return
	}
	l.extraAttributes(spec, a)
	if _, err := spec.accept(v); err != nil {
		hint := ""
		if spec.words != nil && spec.field.Doc != "" {
			hint = " " + spec.field.Doc
		}
		l.Errorf(a.expr.Range, "Invalid value for argument", "Argument %q of %s: %s.%s", a.name, title, err, hint)
	}
}

// extraAttributes reports attributes of an object written out that the
// argument's type does not have: the conversion would drop them silently.
func (l argumentLinker) extraAttributes(spec *argSpec, a arg) {
	cons, ok := a.expr.Syntax.(*hclsyntax.ObjectConsExpr)
	if !ok || !spec.typ.IsObjectType() {
		return
	}
	for _, item := range cons.Items {
		key, diags := metered.EvaluateOnce(item.KeyExpr, nil, l.Allowance())
		if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
			continue
		}
		if name := key.AsString(); !spec.typ.HasAttribute(name) {
			l.Errorf(item.KeyExpr.Range(), "Unsupported attribute", "Argument %q has no attribute %q.%s", a.name, name,
				diag.DidYouMean(name, value.AttributeNames(spec.typ)))
		}
	}
}

// mark marks a default like a value that was given.
func (s *argSpec) mark(v cty.Value) cty.Value {
	if s.field.Sensitive {
		return v.Mark(value.SensitiveMark{})
	}
	return v
}
