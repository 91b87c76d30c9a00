// Package words formats small pieces of text in the same way for all commands: times,
// arguments for a shell, sorted names. In: values. Out: text. It has no side effects.
package words
