// Package serving works on the runs of a state until Ctrl-C or another signal of the operating
// system (`engine serve`), and makes scans of the Supervisor (`engine supervise`). In: flags
// and a state. Out: log lines, metrics on --http, and alerts through package alerts. It builds
// an engine from package engines and the observers of this package.
package serving
