// Package value holds values: JSON documents with marks.
//
//	in:   JSON, values of the expression library (cty), types of agents' schemas
//	out:  Value, its canonical JSON, its parts, its size; cty values and types
//
// It touches nothing but its arguments. It knows no expression and no source text.
//
// Invariants:
//   - Equal values have equal bytes: keys are sorted, numbers are exact decimals.
//   - Marks follow a value through decoding and encoding. The JSON of a secret is null: its
//     text is never part of a Value.
//   - No text that a user supplies can become a mark.
package value
