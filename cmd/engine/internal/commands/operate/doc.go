// Package operate has the commands that work on runs, and those for the state itself: apply,
// serve, supervise, doctor, db and version. Each command is one file: it reads flags, calls a
// shared package and prints the result.
package operate
