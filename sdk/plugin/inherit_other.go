//go:build !unix

package plugin

// CloseOnExec does nothing. On this system a new process inherits only the files that its
// parent names at the start.
func CloseOnExec() error { return nil }
