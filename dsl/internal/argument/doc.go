// Package argument evaluates the arguments of a call.
//
//	in:   a Spec of each argument, from the schema of an action; compiled expressions; a Scope
//	out:  one Value, an object with all arguments, converted and marked as the schema says
//
// It touches nothing but the Scope.
//
// Invariants:
//   - An argument outside of its type, enum, pattern or codes is an error.
//   - For null, an argument gets its default. An optional argument without a default is left
//     out.
//   - Arguments that depend on nothing are evaluated once, when the workflow is linked.
package argument
