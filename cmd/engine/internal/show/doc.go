// Package show prints one run: the heading, the tables of steps and calls, its events, its
// source. In: a history.Run. Out: text, or the JSON object of `engine show --json`. It
// touches stdout only, and hides sensitive values.
package show
