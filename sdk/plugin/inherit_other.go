//go:build !unix

package plugin

// CloseOnExec does nothing: a process inherits only what it is given.
func CloseOnExec() error { return nil }
