//go:build !linux

package private

// Keep does nothing: this system has no such setting. Other processes of the same
// user may be able to read the environment that the process was started with; run it
// as a user of its own.
func Keep() error { return nil }
