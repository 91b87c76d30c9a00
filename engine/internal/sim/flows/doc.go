// Package flows generates random modules for the simulation: parents, child runs, groups and
// libraries, with every construct of the language that matters to a run.
//
// In: a generator of random numbers. Out: the source text, for each step what the checks need to
// know of it, and the names of the constructs that each step uses. The simulation counts these
// names, so that a test can say whether a run used each construct, and which faults happened then.
//
// The variable All lists the constructs, in the order of docs/language.md. The variable Left lists
// the blocks, attributes and references of the language that no generated module has, each with the
// reason. A test checks that each name of the language is in a generated module or in Left.
// Functions of the language are in neither of them: they are pure, and package dsl tests them.
//
// The method Variant returns a changed module, to which a run of the module may be moved. Steps
// that it renames have moved blocks.
package flows
