// Package argument evaluates the arguments of a call.
//
//	in:   a Spec of each argument, from the schema of an action; compiled expressions; a Scope
//	out:  one Value, an object with all arguments, converted and marked as the schema says
//
// It touches nothing but the Scope.
//
// Invariants:
//   - A value that does not fit the type, enum, pattern or codes of its argument is an error.
//   - If the value is null, the argument gets its default. An optional argument without a
//     default is left out.
//   - Arguments that refer to nothing are evaluated once, when the workflow is linked.
package argument
