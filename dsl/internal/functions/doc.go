// Package functions is the table of functions that expressions can call.
//
//	in:   the results of file() and env(), recorded when the definition was loaded
//	out:  a table of functions by name
//
// It touches nothing: functions depend on their arguments only, so a second evaluation gives the
// same value. A function that is expensive for large arguments needs a rate in package metered.
// Some functions of other languages read a clock or random numbers. Impure names them, and says
// what to use instead.
package functions
