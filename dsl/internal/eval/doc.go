// Package eval evaluates the expressions of a linked workflow in a run, and with unknown values
// before a run.
//
//	in:   a Compiled expression and a Scope (a run), or a CheckWorld (only types are known)
//	out:  a value of the expression library, or an error for people
//
// An Expr is an expression in the source. A Compiled is an expression with a list of its
// references. An Evaluator puts the values of these references into the context of the evaluation,
// and leaves out steps and locals to which the expression does not refer. A World supplies the
// values.
//
// Apart from its arguments, the package reads only the Scope. A Memo keeps decoded values between
// the evaluations of one run.
//
// Invariants:
//   - The result and the cost of an evaluation do not depend on the contents of a Memo.
//   - The text of an error in a run contains no sensitive text.
//   - An expression can pass on a whole secret(), but never a part of a secret.
package eval
