// Package link checks declarations against the schemas of agents and makes nouns of them.
//
//	in:   decl.Module, the schemas and versions of the agents
//	out:  noun.Workflow for each workflow, or findings
//
// A new block needs a field of a noun, a function here that fills it, and the checks that only
// linking can make: arguments, types, error codes, undo, null reads.
//
// It touches nothing but its arguments.
//
// Invariants:
//   - Everything that is known before a run is checked here, once. Everything else is a function
//     of a Scope.
//   - A workflow without errors can always be undone as it says, or says that it cannot.
package link
