// Package link checks declarations against the schemas of agents. It makes the types of package
// noun, such as noun.Workflow, from the declarations.
//
//	in:   decl.Module, the schemas and versions of the agents
//	out:  noun.Workflow for each workflow, or findings
//
// To add a block to the language, add a field to a type of package noun, and a function in this
// package that sets this field. Also add the checks that need the schemas: arguments, types, error
// codes, undo, and outputs that may be null.
//
// The package reads and changes nothing but its arguments.
//
// Invariants:
//   - This package checks everything that is known before a run, once. Everything else becomes a
//     function of a Scope.
//   - In a workflow without errors, each step with an effect has an undo, except if the step says
//     compensation = "none", is the only step, is the pivot, or runs after the pivot.
package link
