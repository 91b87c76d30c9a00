// Package metered evaluates expressions and limits their cost.
//
//	in:   an expression, the values to which it refers, an Allowance
//	out:  the value of the expression, or errors for people
//
// A Meter counts the estimated cost and memory of an evaluation. To charge for some work means
// to add its cost and memory to the Meter. If the Meter then exceeds a limit, the evaluation
// panics. The function Of returns an expression with additional nodes. These nodes charge for
// each function, text and round of a loop, before the work is done. Evaluate evaluates such an
// expression. The functions named pay… charge for some work.
//
// The package reads no clock, and nothing but its arguments.
//
// Invariants:
//   - The cost depends only on the expression and the sizes of values. So every engine computes
//     the same cost.
//   - No evaluation allocates much more memory than the Meter has counted.
//   - A panic of the library becomes an error.
package metered
