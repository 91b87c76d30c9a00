// Package story explains to people and programs what has happened to a run. It has facts
// (one for each change by a record), views of steps and calls, and explanations. An
// explanation says why a run is in its present status and what a person can do. The command
// line, the engine's observers and its alerts use this package.
//
// Input is a state and a record, or the change that a record makes (machine.Change). Output is
// values that do not change later. They share no memory with the state, except for inputs and
// outputs (dsl.Value). The package only reads data. To find out whether a verb would be
// accepted it calls machine.Decide.
//
// Invariants:
//   - The facts of a run are numbered from 1 without gaps, in the order of its records. So
//     the numbers are the same whether the facts are reported, counted or selected by kind.
//   - The wording is for people and may change. The kinds and fields of facts are a promise
//     to programs.
package story
