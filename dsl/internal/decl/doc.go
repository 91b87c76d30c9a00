// Package decl reads the declarations of a module. It turns blocks into plain data, and finds
// every reference in them.
//
//	in:   a file system, or the files of a stored definition
//	out:  Module with its agents, variables, local values, workflows and steps
//
// To add a block to the language, add a struct in decl.go and a decoder function in decode.go. In
// graph.go, add the references that the expressions of the block may contain.
//
// The package reads the root directory of the file system. It also reads the files and the
// environment variables that file() and env() name. It needs no schemas of agents.
//
// Invariants:
//   - Parsing continues after an error, so that one mistake does not hide others. The package also
//     checks a declaration whose name is already used. The code calls such a declaration a twin.
//   - The Module holds the results of file() and env(). So a stored definition does not read the
//     files and the environment again.
//   - The same files always give the same Module, with everything in the same order.
package decl
