// Package noun holds the nouns of a linked definition. Package dsl exports them under the same
// names.
//
//	in:   declarations in which package link has resolved all names
//	out:  Workflow, Step, Action, Undo and their parts: data, and functions of a Scope
//
// It touches nothing. A nil function means that the attribute was not written.
//
// Invariants:
//   - Nouns do not change after they were linked, and are safe for concurrent use.
//   - Functions are pure.
package noun
