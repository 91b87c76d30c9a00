// Package hostile runs the built command `engine` on hostile modules: the cases in
// testdata/hostile at the root of the repository. For each case the command must end soon,
// use little memory, and print a message that a person can read.
//
// A case is a txtar archive. Its first line, after "# ", says why the case exists. The lines
// after it are
//
//	run COMMAND…     runs engine and checks the limits
//	first COMMAND…   runs engine and checks only that it exits with code 0
//	exit N…          allowed exit codes of the runs; without it, any documented code
//	says TEXT        part of the printed text of the runs
//	stdin FILE       standard input of the runs
//	env NAME=VALUE   environment variable of the runs
//	mkdir, link OLD NEW, fifo, remove PATH, chmod MODE PATH, cut BYTES PATH
//	                 file operations that an archive cannot express; done in this order
//
// The archive's files are templates: {% rep 1000 "x" %}, {% each 3 "s%d " %} (with the
// index), {% hex "00ff" %}. So a case describes its large files instead of containing
// megabytes.
//
// `make hostile` runs all cases. `make test` runs one case in 32, unless HOSTILE=all.
//
// TestCanaries gives sensitive values to runs, with SQLite and with PostgreSQL, and looks for these
// values in all that commands print, in the logs, and in the state.
package hostile
