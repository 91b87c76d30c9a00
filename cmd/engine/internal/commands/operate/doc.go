// Package operate has the commands that work on runs (apply, serve, supervise), and the commands
// for the state itself (doctor, db, version). Each command is in one file: it reads flags, calls a
// shared package and prints the result.
package operate
