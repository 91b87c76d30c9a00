// Package naming says what runs, unique keys and texts in a store may be called.
//
// In come names that people or agents give, out goes whether and how a store keeps them.
// It also makes the ids of runs and the names that follow from ids. It does no I/O.
// Every store keeps the same names, because every store asks this package.
package naming
