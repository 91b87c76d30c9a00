// Package decl reads the declarations of a module. It turns blocks into plain data, and finds
// every reference in them.
//
//	in:   a file system, or the files of a stored definition
//	out:  Module with its agents, variables, local values, workflows and steps
//
// A new block needs a struct in decl.go, a decoder function next to those of decode.go, and the
// references that its expressions may make in graph.go.
//
// It reads the root directory of the file system, and the files and variables that file() and
// env() name. It knows no schema of an agent.
//
// Invariants:
//   - Parsing continues after an error, so that one mistake does not hide others. A declaration
//     whose name is already used is checked, too. The code calls such a declaration a twin.
//   - The module holds what file() and env() returned. So a stored definition does not read the
//     files and the environment again.
//   - The same files give the same Module, in the same order.
package decl
