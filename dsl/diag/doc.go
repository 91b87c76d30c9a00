// Package diag holds findings about workflows and other files that people write, and
// shows them.
//
// In come findings of package dsl, with the place and the line that each is about. Out go
// text for a terminal and JSON for programs. It reads no file and parses nothing.
package diag
