package noun

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
)

// An Assignment gives a value to a variable.
type Assignment struct {
	Name string
	// Text is the value from a flag or from the environment. For a variable of type string it
	// is the string itself; for any other type it is an expression. For a variable with neither
	// a type nor a default, it is an expression if it is a valid list or object. Otherwise it
	// is the string itself.
	Text   string
	Source string     // where the value comes from: "--var", "ENGINE_VAR_x", "file.vars.hcl:3"
	Where  diag.Range // place in a values file; zero for other sources

	expr hclsyntax.Expression // value in a values file; nil = the value is Text
	src  []byte               // text of that values file
}

// AssignmentIn returns an assignment from a values file. src is the text of that file.
func AssignmentIn(name string, at diag.Range, e hclsyntax.Expression, src []byte) Assignment {
	return Assignment{Name: name, Source: at.String(), Where: at, expr: e, src: src}
}

// WrittenValue returns the expression that a values file gives to a variable, and the text
// of the file. Both are nil for an assignment from another source.
func WrittenValue(a Assignment) (hclsyntax.Expression, []byte) { return a.expr, a.src }
