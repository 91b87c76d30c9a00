//go:build !unix

package history

// running always returns true, because this system has no cheap way to ask.
func running(int) bool { return true }
