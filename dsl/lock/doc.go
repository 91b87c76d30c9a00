// Package lock reads and writes the small files next to a module and in a user's directory: the
// lock file, which holds every engine to the same agents, and the user's configuration.
//
//	in:   bytes of a file
//	out:  Lock, UserConfig, or findings; the canonical bytes of a Lock
//
// It touches nothing but its arguments. Such a file holds plain values: an expression in it is
// an error.
package lock
