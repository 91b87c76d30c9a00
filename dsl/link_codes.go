package dsl

import (
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/sdk"
)

// codeOf converts a value to an error code.
func codeOf(v cty.Value) (string, error) {
	if v.ContainsMarked() {
		return "", errors.New("an error code cannot be sensitive")
	}
	s, err := stringOf(v)
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

// engineCodes are the codes that do not come from agents' schemas.
var engineCodes = []string{
	sdk.CodeTimeout, sdk.CodeAgentLost, sdk.CodeInternal, sdk.CodeBadReply, sdk.CodeUnavailable, sdk.CodeRateLimited,
	sdk.CodeAborted, sdk.CodeInvalid, sdk.CodeDenied,
	"expression_error", "precondition_failed", "postcondition_failed", "deadline_exceeded", "cancelled",
}

// codes warns about error codes that cannot occur, which are most likely
// spelled wrong. Codes that the input names are known too: generic agents
// learn theirs there. Where codes are known only in a run nothing can be said.
func (l *workflowLinker) codes(e *expr, a *linkedAction, input []arg, conditions ...*conditionDecl) {
	if e == nil || e.bad {
		return
	}
	items, ok := e.elements()
	if !ok {
		return
	}
	known := append([]string{"*"}, engineCodes...)
	var sources []*expr
	for _, c := range a.schema.Errors {
		if c.Code == sdk.AnyCode {
			for _, in := range input {
				sources = append(sources, in.expr)
			}
			continue
		}
		known = append(known, c.Code)
	}
	for _, c := range conditions {
		if c.code != nil {
			sources = append(sources, c.code)
		}
	}
	for _, from := range sources {
		if !constant(from) {
			return
		}
		known = append(known, literals(from)...)
	}
	for _, item := range items {
		if len(item.syn.Variables()) > 0 || len(calls(item.syn)) > 0 {
			continue
		}
		v, diags := item.syn.Value(nil)
		if diags.HasErrors() || v.Type() != cty.String || v.IsNull() || contains(known, v.AsString()) {
			continue
		}
		l.warnf(item.rng, "Unknown error code", "Action %s does not answer with the code %q.%s", a.title(), v.AsString(), DidYouMean(v.AsString(), known))
	}
}

// constant reports whether an expression holds nothing but literals, so that
// literals finds every string in it.
func constant(e *expr) bool { return len(e.syn.Variables()) == 0 && len(calls(e.syn)) == 0 }

// literals returns the strings written in an expression.
func literals(e *expr) []string {
	if e == nil {
		return nil
	}
	var out []string
	hclsyntax.VisitAll(e.syn, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := bare(n).(type) {
		case *hclsyntax.LiteralValueExpr:
			if n.Val.Type() == cty.String && n.Val.IsKnown() && !n.Val.IsNull() {
				out = append(out, n.Val.AsString())
			}
		}
		return nil
	})
	return out
}
