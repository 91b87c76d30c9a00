// Package exit has the exit codes of the commands. In: the state of a run, or a fact. Out: a
// code from 0 to 7, and Code, the error that ends a command with it. It has no side effects.
// The codes are part of the interface and never change their meaning.
package exit
