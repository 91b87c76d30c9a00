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
//   - Everything that is known before a run is checked here, once. Everything else becomes a
//     function of a Scope.
//   - In a workflow without errors, each step with an effect has an undo, or it is known that
//     the step is not undone.
package link
