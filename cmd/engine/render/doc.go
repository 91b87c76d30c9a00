// Package render shows runs to people and to programs. The facts of a run go
// in, in order; what comes out is one of three views:
//
//	Terminal  a block of lines redrawn in place
//	Plain     one line for each fact, append only, times in UTC
//	JSON      one JSON object for each fact, one a line
//
// Everything that may come from a stranger (agents' messages, keys, names) is
// cleaned of control characters before it is shown.
package render
