// Package serving has the work of two commands. `engine serve` works on the runs of a state
// until Ctrl-C or another signal of the operating system. `engine supervise` makes scans of
// the Supervisor. In: flags and a state. Out: log lines, metrics on --http, and alerts through
// package alerts. It builds an engine from package engines and the observers of this package.
package serving
