// Package procgroup starts a program in a process group of its own, and kills the whole group. So
// the programs that the program has started end with it, and a Ctrl-C for this process does not
// reach it.
//
// In: a process that was started with Own or OwnBound. Out: the end of its group. Windows cannot
// kill a group: there only the process itself is killed. A program can leave its group, for
// example with setsid. It is not killed then.
package procgroup
