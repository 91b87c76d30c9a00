// Package report collects the findings of one check.
//
//	in:   places in the source, texts, diagnostics of the hcl library
//	out:  sorted findings with their source line, the blocks around it, and suggestions
//
// It touches nothing but the sources that it is given.
//
// Invariants:
//   - No finding shows a sensitive value.
//   - A check ends after MaxErrors errors. Its expressions share one Allowance, which limits
//     their cost.
package report
