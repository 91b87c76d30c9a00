// Package serving works on the runs of a state until a signal: `engine serve`, and the passes
// of `engine supervise`. In: flags and a state. Out: log lines, metrics on --http, and alerts
// through package alerts. It puts an engine together from package engines and the observers
// of this package.
package serving
