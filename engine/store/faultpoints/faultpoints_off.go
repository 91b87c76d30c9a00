//go:build !failpoints

package faultpoints

import "github.com/saga-engine/engine/engine/store"

// Store returns the store unchanged: this build cannot inject faults.
func Store(s store.Store) store.Store { return s }
