// Package flows generates random modules for the simulation: parents, child runs, groups and
// libraries, with every construct of the language that matters to a run.
//
// In: a generator of random numbers. Out: the source text, for each step what the checks need to
// know of it, and the names of the constructs that each step uses. The simulation counts these
// names, so that a test can say whether a run used each construct, and which faults happened then.
//
// The variable All lists the constructs, in the order of docs/language.md. The variable Left lists the
// names of the language that no module has, each with its reason. A test checks that each name
// of the language is in a module or in Left. Functions are left out: they are pure, and package dsl
// tests them. So are moves of runs to another definition: package machine has random tests with moves.
package flows
