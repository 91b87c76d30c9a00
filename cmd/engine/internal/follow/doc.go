// Package follow shows a run while it moves. In: a Session and the row of a run. Out: its
// facts on a render.View, and its exit code. It only reads. One goroutine alone calls the
// view; others send it functions through a Feed.
package follow
