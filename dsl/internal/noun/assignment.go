package noun

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
)

// An Assignment gives a value to a variable.
type Assignment struct {
	Name string
	// Text is the value from a flag or from the environment; "" for a values file. The type of the
	// variable decides how Text is read:
	//   - For the type string, Text is the string itself.
	//   - For any other type, Text is an expression.
	//   - For a variable without a type whose default is missing or null, Text is an expression if
	//     it is a valid list or object. Any other Text is the string itself.
	Text   string
	Source string     // origin of the value: "--var", "ENGINE_VAR_x" or "file.vars.hcl:3"
	Where  diag.Range // position of the value in a values file; zero for other sources

	expr hclsyntax.Expression // value in a values file; nil = the field Text holds the value
	src  []byte               // text of the values file; nil for other sources
}

// AssignmentIn returns an assignment from a values file. The parameter `at` is the position of the
// expression e in this file, and src is the text of the file.
func AssignmentIn(name string, at diag.Range, e hclsyntax.Expression, src []byte) Assignment {
	return Assignment{Name: name, Source: at.String(), Where: at, expr: e, src: src}
}

// WrittenValue returns the expression that a values file gives to a variable, and the text
// of the file. Both are nil for an assignment from another source.
func WrittenValue(a Assignment) (hclsyntax.Expression, []byte) { return a.expr, a.src }
