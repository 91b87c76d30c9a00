// Package explain says why a run makes no progress, and what would let it continue. In: the
// name of a run. Out: sentences, and the commands that would be accepted. It only reads.
package explain
