// Package explain says why a run does not move, and what moves it next. In: the name of a
// run. Out: sentences, and the commands that would be accepted. It only reads.
package explain
