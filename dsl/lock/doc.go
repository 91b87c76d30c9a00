// Package lock parses the lock file of a module and the configuration file of a user. The lock
// file makes every engine use the same agents. The package also formats lock files.
//
//	in:   bytes of a file
//	out:  Lock, UserConfig, or findings; the canonical bytes of a Lock
//
// The package reads no file: the caller passes the bytes. Both files hold only literal values,
// so an expression in a file is an error.
package lock
