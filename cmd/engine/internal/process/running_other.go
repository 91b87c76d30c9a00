//go:build !unix

package process

// running always returns true, because this system has no cheap way to ask whether a process
// exists.
func running(int) bool { return true }
