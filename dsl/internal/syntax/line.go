package syntax

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/eval"
)

// Line parses the text of one expression that is not part of a file, such as a line of the console.
// The parameter `name` is the name of the text in messages. r.Sources must hold the text under this
// name. The text has the same limits as an expression in a file. If the text has an error, Line
// reports it, and returns nil or an expression with the field Bad set.
func (r Reader) Line(text []byte, name string) *eval.Expr {
	if d := Prescan(text, name); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return nil
	}
	e, diags := hclsyntax.ParseExpression(text, name, hcl.InitialPos)
	r.HCL(diags)
	if diags.HasErrors() {
		return nil
	}
	return r.expr(e, false)
}
