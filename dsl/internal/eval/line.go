package eval

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/report"
)

// Line evaluates an expression for a run, as the method Run does. But it adds the errors to r, with
// their positions, and returns false after an error. The texts of these errors contain no sensitive
// text.
func (ev *Evaluator) Line(c *Compiled, s *Scope, r *report.Reporter) (cty.Value, bool) {
	v, diags := ev.Value(c, &runWorld{ev: ev, s: s})
	for _, d := range diags {
		pushHidden(r, d)
	}
	return v, !diags.HasErrors()
}

// pushHidden adds the diagnostic d to r. In the detail of d, it replaces the sensitive texts
// of the evaluation context by "(sensitive)". If there are such texts and d is about a function,
// pushHidden replaces the whole detail, because it may contain a sensitive text in a changed
// form.
func pushHidden(r *report.Reporter, d *hcl.Diagnostic) {
	// The method `HCL` of the Reporter adds suggestions to the detail of d. A suggestion may
	// contain sensitive texts, too. So add the suggestions first, and hide the texts afterwards.
	one := &report.Reporter{}
	one.HCL(hcl.Diagnostics{d})
	for _, out := range one.List {
		texts := sensitiveTexts(d.EvalContext)
		if len(texts) > 0 && (d.Extra != nil || strings.Contains(d.Summary, "function")) {
			out.Detail = "Details are hidden, because an argument is sensitive."
		}
		for _, text := range texts {
			out.Detail = strings.ReplaceAll(out.Detail, text, "(sensitive)")
		}
		r.Push(out)
	}
}
