// Package show prints one run: the heading, the tables of steps and calls, its events, and its
// source. In: a history.Run. Out: text, or the JSON object of `engine show --json`. It writes only
// to stdout, and hides sensitive values.
package show
