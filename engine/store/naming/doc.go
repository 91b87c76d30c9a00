// Package naming checks the names of runs, unique keys and texts in a store.
//
// The package gets names that people or agents have chosen. It says whether a store accepts
// a name, and in which form the store keeps it. The package also makes the ids of runs, and
// the names of runs that were submitted without a name. It does no I/O. Every store uses
// this package, so all stores accept the same names.
package naming
