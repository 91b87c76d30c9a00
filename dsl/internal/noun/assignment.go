package noun

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
)

// An Assignment gives a value to a variable.
type Assignment struct {
	Name string
	// Text is the value as given by a flag or the environment. For a variable
	// of type string it is taken as it is, otherwise it is an expression. Where
	// neither a type nor a default says which, a text that is a list or an
	// object is taken as one, any other as a string.
	Text   string
	Source string     // who says so: "--var", "ENGINE_VAR_x", "file.vars.hcl:3"
	Where  diag.Range // place in a values file; zero for others

	expr hclsyntax.Expression // from a values file; nil = Text
	src  []byte
}

// AssignmentIn is an assignment in a values file, whose text is src.
func AssignmentIn(name string, at diag.Range, e hclsyntax.Expression, src []byte) Assignment {
	return Assignment{Name: name, Source: at.String(), Where: at, expr: e, src: src}
}

// WrittenValue returns the expression that a values file gives to a variable, and the text
// of the file; nil for an assignment from elsewhere.
func WrittenValue(a Assignment) (hclsyntax.Expression, []byte) { return a.expr, a.src }
