package link

import (
	"errors"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

// codeOf converts a value to an error code. A sensitive value, or an invalid error code, is an
// error.
func codeOf(v cty.Value) (string, error) {
	if v.ContainsMarked() {
		return "", errors.New("an error code cannot be sensitive")
	}
	s, err := value.StringOf(v)
	if err == nil && !validCode(s) {
		err = errors.New("an error code is snake_case, at most 100 characters")
	}
	return s, err
}

func validCode(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 100
}

// refusedCode is the error code of a fail_when block without error_code.
const refusedCode = "refused"

// engineCodes are the error codes that the schema of an agent does not have to declare.
var engineCodes = []string{
	sdk.CodeTimeout, sdk.CodeAgentLost, sdk.CodeInternal, sdk.CodeBadReply, sdk.CodeUnavailable, sdk.CodeRateLimited,
	sdk.CodeAborted, sdk.CodeInvalid, sdk.CodeDenied,
	"expression_error", "precondition_failed", "postcondition_failed", "deadline_exceeded", "cancelled", "limit_exceeded",
}

// knownCodes holds the error codes with which a step or an undo can fail.
type knownCodes struct {
	others string   // start of the message about an unknown code, such as "Action X does not answer with"
	own    []string // the error codes, without engineCodes
	open   bool     // true = some of the error codes are known only in a run
}

// codesOf returns the error codes with which a call can fail. These are the codes in the schema of
// the action, the codes that namedCodes finds in the input, and the codes of the conditions.
func (l codeLinker) codesOf(a *linkedAction, input []syntax.Arg, conditions ...*decl.Condition) knownCodes {
	k := knownCodes{others: "Action " + a.title() + " does not answer with", open: a.child != nil}
	if a.form != nil {
		k.open = a.form.open
	}
	for _, c := range a.schema.Errors {
		if c.Code == schema.AnyCode && a.form != nil {
			continue
		}
		if c.Code == schema.AnyCode {
			l.namedCodes(&k, a, input)
			continue
		}
		k.own = append(k.own, c.Code)
	}
	for _, c := range conditions {
		if c.Code != nil {
			k.literals(c.Code)
		}
	}
	return k
}

// namedCodes adds the error codes in the input of an action to k. The caller uses it for an action
// whose schema allows any code. The agent of such an action answers with codes that the workflow
// writes in an argument. If the schema does not say which argument holds codes, namedCodes searches
// all arguments.
func (l codeLinker) namedCodes(k *knownCodes, a *linkedAction, input []syntax.Arg) {
	declared := slices.ContainsFunc(a.schema.Inputs, func(f schema.Field) bool { return f.Codes })
	for _, in := range input {
		spec := a.in[in.Name]
		switch {
		case in.Expr.Bad:
			k.open = true
		case !declared:
			k.literals(in.Expr)
		case spec != nil && spec.Field.Codes:
			k.values(l.check(in.Expr))
		}
	}
}

// values adds the strings in v to k.own. If a part of v is not known before a run, values sets
// k.open.
func (k *knownCodes) values(v cty.Value) {
	raw, _ := v.UnmarkDeep()
	switch {
	case !raw.IsKnown():
		k.open = true
	case raw.IsNull():
	case raw.Type() == cty.String:
		k.own = append(k.own, raw.AsString())
	case raw.CanIterateElements():
		for it := raw.ElementIterator(); it.Next(); {
			_, elem := it.Element()
			k.values(elem)
		}
	}
}

func (k *knownCodes) literals(e *eval.Expr) {
	k.open = k.open || !constant(e)
	k.own = append(k.own, literals(e)...)
}

// codes warns about each error code in the list e that cannot occur, because its spelling is
// probably wrong. The codes that can occur are in k, in engineCodes and in the parameter `also`. If
// e is nil or has an error, or if k.open is true, the method `codes` does nothing.
func (l codeLinker) codes(e *eval.Expr, k knownCodes, also ...string) {
	if e == nil || e.Bad || k.open {
		return
	}
	known := slices.Concat(k.own, engineCodes, also)
	for _, c := range l.writtenCodes(e) {
		if slices.Contains(known, c.code) {
			continue
		}
		hint := diag.DidYouMean(c.code, known)
		switch own := compact(k.own); {
		case c.code == noun.AllCodes:
			hint = " Only catch takes it, for every code."
		case hint == "" && len(own) > 0:
			hint = " Known are " + quotedList(own) + "."
		}
		l.Warnf(c.at, "Unknown error code", "%s the code %q.%s", k.others, c.code, hint)
	}
}

func compact(codes []string) []string {
	out := slices.Clone(codes)
	slices.Sort(out)
	return slices.Compact(out)
}

type writtenCode struct {
	code string
	at   hcl.Range
}

// writtenCodes returns, with their positions, those error codes in the list e that are known before
// a run.
func (l codeLinker) writtenCodes(e *eval.Expr) []writtenCode {
	var out []writtenCode
	add := func(v cty.Value, at hcl.Range) {
		if raw, _ := v.Unmark(); raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() {
			out = append(out, writtenCode{raw.AsString(), at})
		}
	}
	if items, ok := e.Elements(); ok {
		for _, item := range items {
			if constant(item) {
				if v, diags := metered.EvaluateOnce(item.Syntax, nil, l.Allowance()); !diags.HasErrors() {
					add(v, item.Range)
				}
			}
		}
		return out
	}
	if raw, _ := l.quietly(e).Unmark(); raw.IsKnown() && !raw.IsNull() && raw.CanIterateElements() {
		for it := raw.ElementIterator(); it.Next(); {
			_, v := it.Element()
			add(v, e.Range)
		}
	}
	return out
}

// workflowCodes checks the error codes in the retry block of the workflow. This block applies to
// all steps, so it may contain the codes of any step.
func (l codeLinker) workflowCodes() {
	if l.decl.Outer != nil {
		// A group uses the retry block of the workflow that contains the group. That workflow
		// checks the block.
		return
	}
	all := knownCodes{others: "No action of a step answers with"}
	for _, s := range l.steps {
		if !s.calls() {
			continue
		}
		if s.action == nil {
			return
		}
		k := l.codesOf(s.action, s.decl.Input, s.decl.Conditions()...)
		all.own, all.open = append(all.own, k.own...), all.open || k.open
	}
	l.codes(l.decl.Retry.Attr("on"), all)
	l.codes(l.decl.Retry.Attr("not_on"), all)
}

// constant reports whether an expression has neither references nor function calls. In such an
// expression, the strings of the value are among the strings that the function `literals` returns,
// except for a string that a template joins from several parts, such as "a${"b"}".
func constant(e *eval.Expr) bool {
	return len(e.Syntax.Variables()) == 0 && len(eval.Calls(e.Syntax)) == 0
}

// literals returns the literal strings in an expression. It returns nil if e is nil.
func literals(e *eval.Expr) []string {
	if e == nil {
		return nil
	}
	var out []string
	hclsyntax.VisitAll(e.Syntax, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.LiteralValueExpr:
			if n.Val.Type() == cty.String && n.Val.IsKnown() && !n.Val.IsNull() {
				out = append(out, n.Val.AsString())
			}
		}
		return nil
	})
	return out
}
