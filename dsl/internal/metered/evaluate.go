package metered

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// ConstantContext returns the context for expressions that refer to nothing.
func ConstantContext(funcs map[string]function.Function, a *Allowance) *hcl.EvalContext {
	return &hcl.EvalContext{Functions: funcs, Variables: map[string]cty.Value{MeterName: (&Meter{Allowance: a}).Variable()}}
}

// EvaluateOnce evaluates an expression that refers to nothing.
func EvaluateOnce(syn hclsyntax.Expression, funcs map[string]function.Function, a *Allowance) (cty.Value, hcl.Diagnostics) {
	return Evaluate(Of(syn), ConstantContext(funcs, a))
}

// Limits on the diagnostics of one expression. Without them, a loop could fail in each round,
// and an error could quote a text of any length.
const (
	maxDiagnostics = 20
	maxDetail      = 4 << 10 // bytes of the detail of one diagnostic
)

// Evaluate evaluates an expression. A panic in the library becomes a diagnostic,
// because an expression must never end the process.
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

// shortened applies the limits on diagnostics. If a function has panicked, it also
// removes the stack from the message. The stack has file paths of the machine that
// built the engine. They do not help the author of the expression, and would be
// stored in the journal.
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
