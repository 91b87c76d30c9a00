// Package noun holds the types of a linked definition, such as Workflow and Step. Package dsl
// exports these types under the same names.
//
//	in:   declarations in which package link has resolved all names
//	out:  Workflow, Step, Action, Undo and their parts: data, and functions that take a Scope
//
// The package reads no files. If the source lacks an optional attribute, the function for this
// attribute is nil, unless the comment of its field says that it is never nil.
//
// Invariants:
//   - The values do not change after dsl.Link has returned. Then they are safe for concurrent use.
//   - The functions are pure.
package noun
