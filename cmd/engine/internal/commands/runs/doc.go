// Package runs has the commands on runs: list, show, explain, watch, logs, and the verbs. In:
// the name or key of a run. Out: text or JSON. Each command is one file: it reads flags,
// calls a shared package and prints the result. Every command that takes RUN completes the
// names of runs in a shell.
package runs
