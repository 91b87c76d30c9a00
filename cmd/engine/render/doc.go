// Package render shows runs to people and to programs. It gets the facts of a run in order,
// and shows them in one of three views:
//
//	Terminal  a block of lines redrawn in place
//	Plain     one line for each fact, append only, times in UTC
//	JSON      one JSON object for each fact, one a line
//
// It replaces control characters in every text that may come from a stranger, such as agents'
// messages, keys and names.
package render
