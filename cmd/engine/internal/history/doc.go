// Package history reads runs from the state. In: the name or the unique key of a run. Out:
// its row, its workflow, its records and state, its late replies, its owner, and whether its
// journal verifies. It only reads.
package history
