package dsl

import (
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// Format returns src in the canonical layout: two blanks of indentation,
// aligned equal signs, values without needless "${...}", one line break at the
// end, of the kind that ends the first line. It changes nothing that has a meaning, and formatting twice is the same
// as once. Source that cannot be parsed is returned as it is, with the reason.
// A filename that ends in .json is laid out as JSON.
func Format(src []byte, filename string) ([]byte, diag.Diagnostics) {
	return syntax.Format(src, filename)
}
