// Package hostile runs the built command `engine` on hostile modules: the cases of
// testdata/hostile at the root of the repository. For each case the command must end
// soon, in little memory, and with a message that a person can read.
//
// A case is a txtar archive. Its first line, after "# ", says why it is there. The
// lines after it are
//
//	run COMMAND…     runs engine, and holds it to the limits
//	first COMMAND…   runs engine and only wants it to end with code 0
//	exit N…          the exit codes that are right for the runs; any documented one without it
//	says TEXT        part of what the runs print
//	stdin FILE       standard input of the runs
//	env NAME=VALUE   of the runs
//	mkdir, link OLD NEW, fifo, remove PATH, chmod MODE PATH, cut BYTES PATH
//	                 what an archive cannot say; in the order in which they stand
//
// The archive's files are templates: {% rep 1000 "x" %}, {% each 3 "s%d " %} (with
// the index), {% hex "00ff" %}. So a case says what it is made of instead of
// holding megabytes.
//
// `make hostile` runs all; `make test` a quarter, unless HOSTILE=all.
package hostile
