//go:build !failpoints

package pointed

import "github.com/saga-engine/engine/engine/store"

// Store returns the store as it is: this build has no places where faults strike.
func Store(s store.Store) store.Store { return s }
