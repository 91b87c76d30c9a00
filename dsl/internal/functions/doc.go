// Package functions holds the functions that expressions can call.
//
//	in:   the results of file(), env() and similar functions, stored when the definition was loaded
//	out:  a table of functions by name
//
// The result of a function depends only on its arguments and on these stored results, so a second
// evaluation gives the same value. A function that is expensive for large arguments needs an entry
// in the map `rates` of package metered. Some functions of other languages read a clock or random
// numbers. The map Elsewhere names such functions, and says what to use instead.
package functions
