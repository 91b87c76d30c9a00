// Package argument evaluates the arguments of a call.
//
//	in:   a Spec of each argument, from the schema of an action; compiled expressions; a Scope
//	out:  one Value: an object with all arguments. The schema gives their types and sensitive parts.
//
// The package reads nothing except what is listed under "in": no files, no clock, no global state.
//
// Invariants:
//   - A value that does not fit the type, enum, pattern or codes of its argument is an error.
//   - If the value is null, the default replaces it. If the argument is optional and has no
//     default, the object does not contain the argument.
//   - An argument without references is evaluated once, when the workflow is linked.
package argument
