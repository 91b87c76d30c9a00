package metered

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// ConstantContext returns an evaluation context for expressions without references.
func ConstantContext(funcs map[string]function.Function, a *Allowance) *hcl.EvalContext {
	return &hcl.EvalContext{Functions: funcs, Variables: map[string]cty.Value{MeterName: (&Meter{Allowance: a}).Variable()}}
}

// EvaluateOnce evaluates an expression without references. The parameter `funcs` holds the
// functions that the expression can call. The Allowance a limits the cost; nil = only the
// limits of a single expression apply.
func EvaluateOnce(syn hclsyntax.Expression, funcs map[string]function.Function, a *Allowance) (cty.Value, hcl.Diagnostics) {
	return Evaluate(Of(syn), ConstantContext(funcs, a))
}

// Limits of the diagnostics of one evaluation. Without these limits, a loop could return an error
// for each round, and an error could contain a text of any length.
const (
	maxDiagnostics = 20      // largest number of diagnostics
	maxDetail      = 4 << 10 // largest size of the detail of one diagnostic, in bytes
)

// Evaluate evaluates an expression. It turns a panic in the libraries hcl and go-cty into a
// diagnostic, because an expression must never end the process.
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

// shortened returns the diagnostics within the limits maxDiagnostics and maxDetail. If a function
// of the language has panicked, shortened also removes the stack trace from the message. The
// stack trace contains file paths of the machine that built the engine. These paths do not help
// the author of the expression, and must not get into the journal.
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
