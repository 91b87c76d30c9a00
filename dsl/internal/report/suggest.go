package report

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// suggestAttribute returns a suggestion for a diagnostic about an attribute that an object does not
// have. The suggestion names the most similar attribute. If no attribute is similar and the object
// has at most 12 attributes, the suggestion names all of them. In any other case, and for any other
// diagnostic, suggestAttribute returns "".
func suggestAttribute(d *hcl.Diagnostic) string {
	name, ty, ok := MissingAttribute(d)
	if !ok {
		return ""
	}
	if s := diag.Nearest(name, value.AttributeNames(ty)); s != "" {
		return fmt.Sprintf("Did you mean %q?", s)
	}
	if names := value.AttributeNames(ty); len(names) > 0 && len(names) <= 12 {
		return "It has: " + strings.Join(names, ", ") + "."
	}
	return ""
}

// MissingAttribute reads a diagnostic about an attribute that an object does not have. It returns
// the name of the attribute and the type of the object. It returns false for any other diagnostic.
func MissingAttribute(d *hcl.Diagnostic) (string, cty.Type, bool) {
	if d.Summary != "Unsupported attribute" || d.Expression == nil || d.EvalContext == nil {
		return "", cty.NilType, false
	}
	var val cty.Value
	var steps hcl.Traversal
	switch e := d.Expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		v, diags := e.Traversal[:1].TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			return "", cty.NilType, false
		}
		val, steps = v, e.Traversal[1:]
	case *hclsyntax.RelativeTraversalExpr:
		v, diags := metered.Evaluate(e.Source, d.EvalContext)
		if diags.HasErrors() {
			return "", cty.NilType, false
		}
		val, steps = v, e.Traversal
	default:
		return "", cty.NilType, false
	}
	for _, s := range steps {
		next, diags := s.TraversalStep(val)
		if diags.HasErrors() {
			attr, ok := s.(hcl.TraverseAttr)
			if !ok || !val.Type().IsObjectType() {
				return "", cty.NilType, false
			}
			return attr.Name, val.Type(), true
		}
		val = next
	}
	return "", cty.NilType, false
}

// snippetValues describes the known values to which the failed expression refers. It does not
// show sensitive values.
func snippetValues(d *hcl.Diagnostic) []diag.SnippetValue {
	if d.Expression == nil || d.EvalContext == nil {
		return nil
	}
	var out []diag.SnippetValue
	seen := map[string]bool{}
	for _, t := range d.Expression.Variables() {
		v, diags := t.TraverseAbs(d.EvalContext)
		name := traversalText(t)
		if diags.HasErrors() || seen[name] {
			continue
		}
		seen[name] = true
		if s := describe(v); s != "" {
			out = append(out, diag.SnippetValue{Traversal: name, Statement: s})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Traversal < out[j].Traversal })
	return out
}

// describe returns a statement about a value, such as `is "gold"`. It returns "" if the value is
// not known. The statement never shows a sensitive value.
func describe(v cty.Value) string {
	switch {
	case v.ContainsMarked():
		return "has a sensitive value"
	case v.Type() == cty.DynamicPseudoType && !v.IsKnown():
		return ""
	case !v.IsKnown():
		return "" // only a run knows the value
	case v.IsNull():
		return "is null"
	case v.Type() == cty.String:
		s := v.AsString()
		if len(s) > 60 {
			s = strings.ToValidUTF8(s[:57], "") + "..."
		}
		return fmt.Sprintf("is %q", s)
	case v.Type() == cty.Bool:
		return fmt.Sprintf("is %t", v.True())
	case v.Type() == cty.Number:
		text, err := value.NumberText(v.AsBigFloat())
		if err != nil {
			return "is a number with too many digits"
		}
		return "is " + text
	case v.CanIterateElements():
		return fmt.Sprintf("is %s with %d elements", v.Type().FriendlyName(), v.LengthInt())
	}
	return ""
}

// traversalText returns the source text of a traversal, such as var.plan.
func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			switch {
			case s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull():
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			case s.Key.Type() == cty.Number && s.Key.IsKnown() && !s.Key.IsNull():
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', -1) + "]")
			default:
				b.WriteString("[...]")
			}
		}
	}
	return b.String()
}
