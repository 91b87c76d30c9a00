// Package fasteval evaluates common expressions on the bytes of JSON, without decoding it. This
// saves most of the time of a step (decision 27).
//
//	in:   an expression (Compile) and a Scope; a reply and its Shape (Canonical)
//	out:  canonical JSON with marks, or "not me"
//
// It touches nothing but the Scope.
//
// Invariants:
//   - It gives up wherever anything is unusual: a value to convert, a mark inside, something
//     missing. Then package eval evaluates, which also says what is wrong.
//   - Where it does not give up, the outcome is that of package eval to the byte. Tests compare
//     the two over generated expressions, values and replies.
package fasteval
