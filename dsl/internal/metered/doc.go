// Package metered evaluates expressions and limits their cost.
//
//	in:   an expression, the values that it sees, an Allowance
//	out:  its value, or errors for people
//
// Of returns an expression with additional nodes. They charge a Meter for each function, text
// and round of a loop, before the work is done. Evaluate evaluates such an expression. Functions
// named pay… charge the Meter: they add to its cost and memory, and panic if a limit is exceeded.
//
// It touches nothing but its arguments, and reads no clock.
//
// Invariants:
//   - The cost depends on the expression and on the sizes of values only, so it is the same on
//     every engine.
//   - No evaluation allocates much more memory than was charged for it.
//   - A panic of the library becomes an error.
package metered
