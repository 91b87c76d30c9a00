package eval

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// runtimeError returns the first error in diags as a Go error. In the text, it replaces the
// sensitive texts of the evaluation context by "(sensitive)". If there are such texts and the error
// is about a function, runtimeError hides its details, because they may contain a sensitive text in
// a changed form.
func runtimeError(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		r := &report.Reporter{}
		r.HCL(hcl.Diagnostics{d})
		out := r.List[0]
		text := out.Error()
		if hidden := sensitiveTexts(d.EvalContext); len(hidden) > 0 {
			if d.Extra != nil || strings.Contains(d.Summary, "function") {
				text = fmt.Sprintf("%s: %s: details are hidden, because an argument is sensitive", out.Range, out.Summary)
			}
			for _, h := range hidden {
				text = strings.ReplaceAll(text, h, "(sensitive)")
			}
		}
		return errors.New(text)
	}
	return errors.New("the expression could not be evaluated")
}

// sensitiveTexts returns the sensitive strings and numbers of a context and of its parents as
// texts, longest first. It leaves out texts of less than value.MinSensitive-1 bytes.
func sensitiveTexts(ctx *hcl.EvalContext) []string {
	seen := map[string]bool{}
	for ; ctx != nil; ctx = ctx.Parent() {
		for _, v := range ctx.Variables {
			if !v.ContainsMarked() {
				continue
			}
			raw, marks := v.UnmarkDeepWithPaths()
			for _, m := range marks {
				part, err := m.Path.Apply(raw)
				if err != nil {
					continue // a path never leads into a set: a set with a sensitive element is sensitive as a whole
				}
				walkTexts(part, seen)
			}
		}
	}
	delete(seen, "")
	out := sorted.Keys(seen)
	sort.SliceStable(out, func(i, j int) bool { return len(out[i]) > len(out[j]) })
	return out
}

func walkTexts(v cty.Value, out map[string]bool) {
	// Walk returns only an error of the callback, and the callback never returns an error.
	_ = cty.Walk(v, func(_ cty.Path, x cty.Value) (bool, error) {
		if x.IsKnown() && !x.IsNull() && (x.Type() == cty.String || x.Type() == cty.Number) {
			if s, err := value.ConvertScalar(x, cty.String); err == nil && len(s.AsString()) >= value.MinSensitive-1 {
				out[s.AsString()] = true
			}
		}
		return true, nil
	})
}
