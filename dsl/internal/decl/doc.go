// Package decl reads the declarations of a module: blocks become plain data with every reference
// found.
//
//	in:   a file system, or the files of a stored definition
//	out:  Module with its agents, variables, local values, workflows and steps
//
// A new block needs a struct in decl.go, a decoder function next to those of decode.go, and the
// references that its expressions may make in graph.go.
//
// It reads the root of the file system, and what file() and env() name. It knows no schema of
// an agent.
//
// Invariants:
//   - Parsing goes on after an error, so that one mistake does not hide others. A declaration
//     whose name is taken is checked too, and is a twin.
//   - The answers of file() and env() are recorded: a stored definition needs neither.
//   - The same files give the same Module, in the same order.
package decl
