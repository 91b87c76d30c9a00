// Package diag holds findings about workflows and other files that people write, and
// shows them.
//
//	in:   findings of package dsl, each with its position and its source line
//	out:  text for a terminal, JSON for programs
//
// It reads no file and parses nothing.
package diag
