//go:build !linux

package private

// Keep does nothing, because this system has no such setting. Other processes of the same
// user may be able to read the environment with which the process was started. Run the
// process as a separate user to prevent that.
func Keep() error { return nil }
