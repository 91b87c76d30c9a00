// Package report collects the findings of one check.
//
//	in:   positions in the source, texts, diagnostics of the hcl library
//	out:  sorted findings with their source line, the blocks that contain it, and suggestions
//
// It reads no file: the caller passes the sources.
//
// Invariants:
//   - No finding shows a sensitive value.
//   - A check ends after MaxErrors errors. All expressions of a check share one Allowance, which
//     limits their total cost.
package report
