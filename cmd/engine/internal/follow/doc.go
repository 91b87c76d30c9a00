// Package follow shows a run while an engine works on it. In: a Session and the row of a run.
// Out: the facts of the run on a render.View, and its exit code. It only reads. Only one
// goroutine calls the view. Other goroutines send functions to that goroutine through a Feed.
package follow
