// Package fasteval evaluates common expressions on the bytes of JSON, without decoding the JSON.
// This saves most of the time of a step (decision 27).
//
//	in:   an expression (Compile) and a Scope; a reply and its Shape (Canonical)
//	out:  canonical JSON with marks, or false if package eval must evaluate the expression
//
// Apart from its arguments, the package reads only the Scope.
//
// Invariants:
//   - If anything is unusual, the package returns false: a value needs a conversion, only a part
//     of a value is sensitive, or a value is missing. Then package eval evaluates the expression,
//     and reports errors.
//   - If the package returns a result, package eval gives the same result, byte for byte. Tests
//     compare both packages with generated expressions, values and replies.
package fasteval
