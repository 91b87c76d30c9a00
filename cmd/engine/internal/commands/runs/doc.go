// Package runs has the commands on runs: list, show, explain, watch, logs, and the verbs. In:
// the name or key of a run. Out: text or JSON. Each command is one file: flags, a call into a
// room, output. Every command that takes RUN completes the names of runs in a shell.
package runs
