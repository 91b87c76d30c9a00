// Package functions is the table of functions that expressions can call.
//
//	in:   what file() and env() answered when the definition was loaded
//	out:  a table by name
//
// It touches nothing: functions depend on their arguments only, so evaluating twice gives the
// same. A function that is dear for large arguments needs a price in package metered. A function
// of other languages that reads a clock or chance is in Impure, with what to use instead.
package functions
