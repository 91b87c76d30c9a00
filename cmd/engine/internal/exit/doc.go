// Package exit has the exit codes of the commands. In: the state of a run, or a fact. Out: a code
// from 0 to 7, and the error type Code, which ends a command with such a code. It has no side
// effects. The codes are part of the interface and never change their meaning.
package exit
