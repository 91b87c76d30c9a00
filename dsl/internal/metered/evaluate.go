package metered

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// ConstantContext is for expressions that refer to nothing.
func ConstantContext(funcs map[string]function.Function, a *Allowance) *hcl.EvalContext {
	return &hcl.EvalContext{Functions: funcs, Variables: map[string]cty.Value{MeterName: (&Meter{Allowance: a}).Variable()}}
}

// EvaluateOnce evaluates an expression that refers to nothing.
func EvaluateOnce(syn hclsyntax.Expression, funcs map[string]function.Function, a *Allowance) (cty.Value, hcl.Diagnostics) {
	return Evaluate(Of(syn), ConstantContext(funcs, a))
}

// maxDiagnostics bounds what is reported of one expression, and maxDetail what
// is said of each: a loop may fail in each round, and an error may cite a text
// of any length.
const (
	maxDiagnostics = 20
	maxDetail      = 4 << 10
)

// Evaluate evaluates; a panic in the library becomes a diagnostic, because
// an expression must never take the process down.
func Evaluate(syn hclsyntax.Expression, ctx *hcl.EvalContext) (v cty.Value, diags hcl.Diagnostics) {
	m := MeterOf(ctx)
	defer func() {
		p := recover()
		diags = shortened(diags)
		if m != nil && m.Over != nil {
			v, diags = cty.DynamicVal, m.Over.Diagnostics(syn.Range())
			return
		}
		if p != nil {
			rng := syn.Range()
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{
				Severity: hcl.DiagError, Subject: &rng, Summary: "Cannot evaluate",
				Detail: fmt.Sprintf("The expression made the evaluator panic: %v.", p),
			}}
		}
	}()
	return syn.Value(ctx)
}

// shortened leaves out what is too much to read. A function that panics has its
// stack in the message: the paths of the machine it was built on say nothing to
// the author of an expression, and would get into the journal.
func shortened(diags hcl.Diagnostics) hcl.Diagnostics {
	diags = diags[:min(len(diags), maxDiagnostics)]
	for i, d := range diags {
		text, stack, panicked := strings.Cut(d.Detail, "\ngoroutine ")
		panicked = panicked && strings.Contains(stack, "debug.Stack")
		if panicked {
			text = strings.Replace(text, "panic in function implementation", "the function cannot compute it", 1) + "."
		} else {
			text = d.Detail
		}
		if len(text) > maxDetail {
			text = strings.ToValidUTF8(text[:maxDetail], "") + " ..."
		}
		if text != d.Detail {
			short := *d
			short.Detail = text
			diags[i] = &short
		}
	}
	return diags
}
