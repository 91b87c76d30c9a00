// Package history reads runs from the state. In: the name or the unique key of a run. Out: its
// row, its workflow, its records and state, its late replies and its owner. It also checks
// whether the journal was changed. It only reads.
package history
