// Package words writes small pieces of text in one way: times, arguments for a shell, sorted
// names. In: values. Out: text. It has no side effects.
package words
