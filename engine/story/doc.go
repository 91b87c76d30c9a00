// Package story says what has happened to a run, for people and for programs: facts (one
// for each thing that a record changed), views of steps and calls, and an explanation of
// why a run is where it is and what a person can do about it. The command line, the engine's
// observers and its alerts read it.
//
// In: a state and a record, or what a record makes of a state (machine.Change). Out: values
// that refer to nothing which changes later, except documents. It reads data only: it
// decides nothing, and asks machine.Decide whether a verb would be accepted.
//
// Invariants:
//   - Facts of a run are numbered from 1 without gaps, in the order of its records. So the
//     same record has the same facts, whether they are told, counted or selected by kind.
//   - Wording is for people and may change. Kinds and fields of facts are a promise to
//     programs.
package story
