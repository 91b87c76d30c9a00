// Package faultpoints wraps a store, so that a test can inject a fault before and after each call that
// changes the store.
//
// In: a store. Out: a store with the same roles, which passes each call on. Before and after a call
// that changes the store it visits a place of package engine/internal/failpoint, such as
// store.Commit.after. It keeps no data.
//
// The places exist only in a build with the tag failpoints. In an ordinary build the function Store
// returns the store unchanged.
package faultpoints
