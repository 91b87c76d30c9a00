// Package naming checks the names of runs, unique keys and texts in a store.
//
// In: names that people or agents give. Out: whether a store keeps them, and in which form.
// The package also makes the ids of runs and the names that are made from ids. It does no
// I/O. Every store uses this package, so all stores keep the same names.
package naming
