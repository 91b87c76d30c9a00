package decl

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/eval"
)

// A star is an operator [*] or .* directly after a reference step.NAME. It may also be after a
// reference to a group: refStep has already changed the first word of such a reference to `step`.
type star struct {
	step string // name of the step or group
	// rest is part of a diagnostic: the attributes after the operator, such as .output.id. It is
	// ".output.NAME" if something else or nothing is after the operator.
	rest  string
	where hcl.Range
}

// stars returns each operator [*] and .* that directly follows a reference step.NAME in an
// expression.
func stars(e hclsyntax.Expression) (out []star) {
	// VisitAll returns only the diagnostics of the callback, and the callback returns none.
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		splat, is := n.(*hclsyntax.SplatExpr)
		if !is {
			return nil
		}
		source, is := splat.Source.(*hclsyntax.ScopeTraversalExpr)
		if !is || source.Traversal.RootName() != "step" || len(source.Traversal) != 2 {
			return nil
		}
		s := star{step: eval.NameOf(source.Traversal[1]), rest: ".output.NAME", where: splat.SrcRange}
		if r, is := splat.Each.(*hclsyntax.RelativeTraversalExpr); is {
			if text := attributes(r.Traversal); text != "" {
				s.rest = text
			}
		}
		out = append(out, s)
		return nil
	})
	return out
}

// attributes returns the source text of a traversal that has only attributes, such as .output.id.
// For any other traversal it returns "".
func attributes(t hcl.Traversal) string {
	text := ""
	for _, part := range t {
		attr, ok := part.(hcl.TraverseAttr)
		if !ok {
			return ""
		}
		text += "." + attr.Name
	}
	return text
}
