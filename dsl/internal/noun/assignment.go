package noun

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
)

// An Assignment gives a value to a variable.
type Assignment struct {
	Name string
	// Text is the value from a flag or from the environment; "" for other sources. The type of the
	// variable decides how Text is read:
	//   - For the type string, Text is the string itself.
	//   - For any other type, Text is an expression.
	//   - For a variable without a type whose default is missing or null, Text is an expression if
	//     it is a valid list or object. Any other Text is the string itself.
	Text   string
	Source string     // origin of the value, such as "--var", "ENGINE_VAR_x", "file.vars.hcl:3" or the name of a block
	Where  diag.Range // position of the value in a values file, or of the argument `variables`; zero = not known

	expr hclsyntax.Expression // value from a values file, a block or JSON; nil = the field Text holds the value
	src  []byte               // text of the values file; nil for other sources
}

// AssignmentIn returns an assignment of the expression e. The parameter `at` is the position of e.
// The parameter `src` is the text of the values file that contains e; nil = e is not from a values
// file.
func AssignmentIn(name string, at diag.Range, e hclsyntax.Expression, src []byte) Assignment {
	return Assignment{Name: name, Source: at.String(), Where: at, expr: e, src: src}
}

// WrittenValue returns the expression that an assignment gives to a variable. It returns nil if the
// field Text holds the value. The second result is the text of the values file that contains the
// expression; nil = the expression is not from a values file.
func WrittenValue(a Assignment) (hclsyntax.Expression, []byte) { return a.expr, a.src }
