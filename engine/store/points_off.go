//go:build !failpoints

package store

// WithFailpoints returns the store as it is: this build has no places where faults
// strike.
func WithFailpoints(s Store) Store { return s }
