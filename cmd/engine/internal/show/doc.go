// Package show prints one run: the heading, the tables of steps and calls, its events, and its
// source. In: a history.Run. Out: text, or the JSON object of `engine show --json`. It writes to
// stdout, and writes warnings about outputs to stderr. It hides sensitive values.
package show
