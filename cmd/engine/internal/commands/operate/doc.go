// Package operate has the commands that work on runs (apply, serve, supervise), the commands for
// published workflows, events and unique keys (publish, schedule, select, event, goal), and the
// commands for the state itself (doctor, db, key, version). Each command is in one file: it reads
// flags, calls a shared package and prints the result.
package operate
