// Package value holds values: JSON documents with marks.
//
//	in:   JSON, values of the expression library (cty), types of agents' schemas
//	out:  Value, its canonical JSON, its parts, its size; cty values and types
//
// The package reads and changes nothing but its arguments. It does not handle expressions or
// source text.
//
// Invariants:
//   - Equal values have equal bytes: keys are sorted, numbers are exact decimals.
//   - Decoding and encoding keep the marks of a value. The JSON of a secret is null: the text of
//     a secret is never part of a Value.
//   - No text that a user supplies can become a mark.
package value
