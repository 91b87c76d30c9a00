//go:build !unix

package plugin

// CloseOnExec does nothing: on this system a process inherits only the files that it is
// given.
func CloseOnExec() error { return nil }
