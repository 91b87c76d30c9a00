// Package faultpoints wraps a store, so that a test can inject a fault before and after most calls
// that change the store.
//
// In: a store. Out: a store that passes each call to the wrapped store. Before and after most calls
// that change the store, there is a place at which package engine/internal/failpoint can inject a
// fault, such as store.Commit.after. Some optional roles have no such places, for example
// quota.Sharer and rekey.Resealer. The result has some optional roles even if the wrapped store
// lacks them. The methods of such a role then find nothing, change nothing or return an error. The
// package keeps no data.
//
// The places exist only in a build with the tag failpoints. In an ordinary build the function Store
// returns the store unchanged.
package faultpoints
