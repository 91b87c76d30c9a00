// Package story explains to people and programs what has happened to a run. It has facts
// (changes that a record makes), views of steps and calls, and explanations. An explanation says
// why a run is in its present status and what a person can do. The command line, the engine's
// observers and its alerts use this package.
//
// The functions take a state and a record, or the change that a record makes (machine.Change).
// Their results do not change later. Except for values of the type dsl.Value, a result shares no
// memory with the state. The package changes nothing. To find out whether a verb would be
// accepted, it calls machine.Decide.
//
// Invariants:
//   - The facts of a run are numbered from 1 without gaps, in the order of its records. A fact
//     keeps its number even if only some kinds of facts are shown.
//   - The wording is for people and may change. The kinds and fields of facts are a promise
//     to programs.
package story
