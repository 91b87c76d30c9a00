// Package lock parses two small files. The lock file of a module makes every engine use the same
// agents. The other file is the configuration of a user. The package also formats lock files.
//
//	in:   bytes of a file
//	out:  Lock, UserConfig, or findings; the canonical bytes of a Lock
//
// It touches nothing but its arguments. Both files hold literal values: an expression in them is
// an error.
package lock
