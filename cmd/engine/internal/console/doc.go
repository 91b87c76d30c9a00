// Package console evaluates expressions that a person types, or that come from a pipe, line by
// line. In: a module or a run of the store, and lines. Out: values and errors. It reads the store
// once, before the first line, and changes nothing.
package console
