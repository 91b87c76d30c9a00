// Package eval evaluates the expressions of a linked workflow in a run, and with unknown values
// before a run.
//
//	in:   a Compiled expression and a Scope (a run), or a CheckWorld (only types are known)
//	out:  a value of the expression library, or an error for people
//
// An Expr is an expression as it is written. A Compiled expression also lists everything that it
// refers to. An Evaluator puts only these values into the context of the evaluation. A World
// supplies the values.
//
// It touches nothing but the Scope. A Memo keeps decoded values between the evaluations of one run.
//
// Invariants:
//   - The result and its cost do not depend on what a Memo holds.
//   - An error of a run holds no sensitive text.
//   - An expression can pass on a whole secret(), but never a part of it.
package eval
