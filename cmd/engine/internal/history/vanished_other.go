//go:build !unix

package history

// running is always true here: this system has no cheap way to ask.
func running(int) bool { return true }
