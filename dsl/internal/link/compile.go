package link

import (
	"fmt"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// exprFunc returns a function that evaluates the expression e in a run and converts the result
// with conv. It returns nil if e is nil. It reports errors that it can find before a run. If the
// result is constant, exprFunc converts the result once, before a run.
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
	at, d := report.Range(e.Range), l.fast(e, fasteval.Anything)
	return func(s *eval.Scope) (T, error) {
		if v, ok := d.Scalar(&fasteval.Context{Evaluator: ev, Scope: s, Self: self}); ok {
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

// valueFunc returns a ValueFunc that evaluates the expression e. If the function `accept` is not
// nil, it checks and converts each result. If the parameter `whole` is true, the whole result is
// marked as sensitive.
func (l argumentLinker) valueFunc(e *eval.Expr, name string, whole bool, accept func(cty.Value) (cty.Value, error)) noun.ValueFunc {
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
	d, ev, self := l.fast(e, fasteval.Anything), l.ev, max(l.cur, 0)
	if d == nil || e.Compiled.Constant != nil {
		return general
	}
	return func(s *eval.Scope) (value.Value, error) {
		if v, ok := d.Value(&fasteval.Context{Evaluator: ev, Scope: s, Self: self}, whole); ok {
			return v, nil
		}
		return general(s)
	}
}

// arguments checks the arguments in the source (`args`) against the arguments in the schema
// (`specs`). It returns the compiled arguments. The parameter `at` is the position for errors about
// missing arguments, and the parameter `title` is the name of the action in messages. The parameter
// `byKey` is true if the call is an undo by key. An undo by key may run without the step's output,
// and then leaves out the arguments that depend on self.output. So the method `arguments` reports
// an error if the action requires such an argument.
func (l argumentLinker) arguments(specs map[string]*argument.Spec, args []syntax.Arg, at hcl.Range, title string, byKey bool) *argument.List {
	out := &argument.List{Evaluator: l.ev, Self: max(l.cur, 0)}
	written := map[string]bool{}
	for _, a := range args {
		written[a.Name] = true
		spec, ok := specs[a.Name]
		if !ok {
			l.Errorf(a.Where, "Unsupported argument", "%s has no argument %q.%s", upperFirst(title), a.Name, diag.DidYouMean(a.Name, sorted.Keys(specs)))
			l.check(a.Expr)
			continue
		}
		l.argument(spec, a, title)
		plainSecrets(l.Reporter, spec, a, title)
		if a.Expr.Bad || a.Expr.Compiled == nil {
			continue
		}
		if a.Expr.Compiled.SelfOutput {
			out.UsesSelf = true
			if byKey && spec.Required() {
				l.Errorf(a.Where, "Argument cannot be left out",
					"The undo is called by key when the step's output is not known; then this argument is left out, but %s requires it.", title)
			}
		}
		out.List = append(out.List, l.compiledArgument(spec, a))
	}
	for _, n := range sorted.Keys(specs) {
		switch spec := specs[n]; {
		case written[n]:
		case spec.Required():
			l.Errorf(at, "Missing required argument", "%s requires argument %q (%s)%s.", upperFirst(title), n, value.TypeText(spec.Type), docText(spec.Field.Doc))
		case spec.Default != cty.NilVal:
			out.List = append(out.List, argument.Argument{Spec: spec, Name: n, Ready: spec.Preset()})
		}
	}
	sort.Slice(out.List, func(i, j int) bool { return out.List[i].Name < out.List[j].Name })
	out.Fold()
	return out
}

func (l argumentLinker) argument(spec *argument.Spec, a syntax.Arg, title string) {
	v := l.check(a.Expr)
	if a.Expr.Bad {
		return
	}
	l.extraAttributes(spec, a)
	if _, err := spec.Accept(v); err != nil {
		hint := ""
		if spec.Words != nil && spec.Field.Doc != "" {
			hint = " " + spec.Field.Doc
		}
		l.Errorf(a.Expr.Range, "Invalid value for argument", "Argument %q of %s: %s.%s", a.Name, title, err, hint)
	}
}

// compiledArgument compiles an argument in the source. If the argument has no references, it
// also evaluates the argument.
func (l argumentLinker) compiledArgument(spec *argument.Spec, a syntax.Arg) argument.Argument {
	out := argument.Argument{Spec: spec, Name: a.Name, Path: []byte("/" + value.EscapePointer(a.Name)), Compiled: a.Expr.Compiled, At: report.Range(a.Expr.Range), Preset: spec.Preset()}
	switch {
	case len(a.Expr.Syntax.Variables()) == 0: // the argument has no references, but it may call secret()
		v, err := l.ev.Run(out.Compiled, &eval.Scope{}, max(l.cur, 0))
		if err == nil {
			v, err = spec.Accept(v)
		}
		if err == nil {
			// ReadyOf returns nil if v cannot be encoded. Then each evaluation in a run reports the
			// error.
			out.Ready = argument.ReadyOf(a.Name, v)
		}
	case value.IsPlain(a.Name):
		out.Fast = l.fast(a.Expr, fasteval.ShapeOf(spec.Field.Type))
	}
	return out
}

// extraAttributes checks an argument that is an object in the source. It reports an error for each
// attribute of the object that the type of the argument does not have. The conversion to the type
// would drop such an attribute without an error.
func (l argumentLinker) extraAttributes(spec *argument.Spec, a syntax.Arg) {
	cons, ok := a.Expr.Syntax.(*hclsyntax.ObjectConsExpr)
	if !ok || !spec.Type.IsObjectType() {
		return
	}
	for _, item := range cons.Items {
		key, diags := metered.EvaluateOnce(item.KeyExpr, nil, l.Allowance())
		if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
			continue
		}
		if name := key.AsString(); !spec.Type.HasAttribute(name) {
			l.Errorf(item.KeyExpr.Range(), "Unsupported attribute", "Argument %q has no attribute %q.%s", a.Name, name,
				diag.DidYouMean(name, value.AttributeNames(spec.Type)))
		}
	}
}
