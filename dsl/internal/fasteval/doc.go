// Package fasteval evaluates common expressions on the bytes of JSON, without decoding it. This
// saves most of the time of a step (decision 27).
//
//	in:   an expression (Compile) and a Scope; a reply and its Shape (Canonical)
//	out:  canonical JSON with marks, or false if it gives up
//
// It touches nothing but the Scope.
//
// Invariants:
//   - It gives up if anything is unusual: a value needs a conversion, a part of a value is
//     sensitive, or something is missing. Then package eval evaluates the expression, and
//     reports what is wrong.
//   - If it does not give up, package eval gives the same result, byte for byte.
//     Tests compare the two with generated expressions, values and replies.
package fasteval
