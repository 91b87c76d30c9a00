// Package procgroup starts a program in a process group of its own, and kills the whole group. So
// if the program has started other programs, they end, too. A Ctrl-C for the calling process does
// not reach the group.
//
// In: a process that was started with Own or OwnBound. Out: the end of its group. On Windows a
// group cannot be killed, so only the process itself is killed. A program can leave its group, for
// example with setsid. Such a program is not killed.
package procgroup
