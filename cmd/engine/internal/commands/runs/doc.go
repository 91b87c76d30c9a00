// Package runs has the commands that show runs or replies (list, show, explain, watch, logs,
// replies, console), and the commands that change runs: migrate, restart and the verbs. In: the
// name or key of a run. Out: text or JSON. Each command is in one file: it reads flags, calls a
// shared package and prints the result. For every command that takes RUN, a shell can complete the
// name of the run.
package runs
