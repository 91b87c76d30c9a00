// Package faultpoints wraps a store, so that a test can inject a fault before and after each call
// that changes the store.
//
// In: a store. Out: a store with the same roles, which passes each call to the wrapped store.
// Before and after each call that changes the store, there is a place at which package
// engine/internal/failpoint can inject a fault, such as store.Commit.after. The package keeps no
// data.
//
// The places exist only in a build with the tag failpoints. In an ordinary build the function Store
// returns the store unchanged.
package faultpoints
