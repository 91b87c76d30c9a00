//go:build !unix

package history

// running is true: nobody can be asked.
func running(int) bool { return true }
