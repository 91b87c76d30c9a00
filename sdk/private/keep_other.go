//go:build !linux

package private

// Keep does nothing, because this system has no such setting. Other processes of the same
// user may be able to read the environment with which this process was started. To prevent
// that, run this process as a separate user.
func Keep() error { return nil }
