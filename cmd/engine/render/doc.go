// Package render shows runs to people and to programs. A view gets the facts of a run in order,
// and shows them. There are three views:
//
//	Terminal  a block of lines redrawn in place
//	Plain     one line for each fact, append only, times in UTC
//	JSON      one JSON object on one line for each fact
//
// All views replace control characters in texts that do not come from the engine, such as agents'
// messages, keys and names.
package render
