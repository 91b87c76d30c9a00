package syntax

import (
	"bytes"
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// checkSyntax reports the errors that it can find without values: calls of functions that do not
// exist, and numbers with too many digits. It also makes long literal numbers exact.
func (r Reader) checkSyntax(e *eval.Expr) {
	hclsyntax.VisitAll(e.Syntax, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.FunctionCallExpr:
			if !functions.Known(n.Name) {
				e.Bad = true
				hint := diag.DidYouMean(n.Name, functions.Names())
				if why, ok := functions.Elsewhere[n.Name]; ok {
					hint = " " + why
				}
				r.Errorf(n.NameRange, "Call to unknown function", "There is no function named %q.%s", n.Name, hint)
			}
		case *hclsyntax.LiteralValueExpr:
			r.checkNumber(e, n)
		}
		return nil
	})
}

// checkNumber makes a literal number exact. It reports a number with too many digits.
func (r Reader) checkNumber(e *eval.Expr, n *hclsyntax.LiteralValueExpr) {
	if err := ExactNumber(n, r.Sources[n.SrcRange.Filename]); err != nil {
		e.Bad = true
		r.Errorf(n.SrcRange, "Number too long", "A number may have at most %d digits.", value.MaxDigits)
	}
}

// ExactNumber sets n.Val to the exact value of the literal number n, if the number is long. The hcl
// library rounds numbers to 512 bits, approximately 150 digits. The parameter `src` is the text of
// the whole file or value. ExactNumber returns an error if the number has too many digits.
func ExactNumber(n *hclsyntax.LiteralValueExpr, src []byte) error {
	if n.Val.Type() != cty.Number || n.Val.IsNull() || !n.Val.IsKnown() {
		return nil
	}
	if _, err := value.NumberText(n.Val.AsBigFloat()); err != nil {
		return err
	}
	from, to := n.SrcRange.Start.Byte, n.SrcRange.End.Byte
	if to > len(src) || to-from < 100 && !bytes.ContainsAny(src[from:to], "eE") {
		return nil
	}
	switch v, err := value.ParseNumber(strings.TrimSpace(string(src[from:to]))); {
	case err == nil:
		n.Val = v
	case errors.Is(err, value.ErrDigits):
		return err
	}
	return nil
}
