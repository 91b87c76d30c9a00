package dsl

import (
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// Format returns src in the canonical layout: two blanks of indentation,
// aligned equal signs, and values without needless "${...}". The result ends
// with one line break, of the same kind as the first line break of src. Format
// does not change the meaning. Formatting twice gives the same as formatting
// once. If src cannot be parsed, Format returns it unchanged, with the reason.
// It also returns src unchanged if the canonical layout would change the meaning.
// If `filename` ends in .json, src is formatted as JSON.
func Format(src []byte, filename string) ([]byte, diag.Diagnostics) {
	return syntax.Format(src, filename)
}
