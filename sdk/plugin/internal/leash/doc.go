// Package leash starts a process so that it ends with all its descendants: when
// the process itself ends, when Kill is called, and when the host dies.
//
// A process group is not enough for that. A descendant leaves its group with
// setsid, a signal can be ignored, and a host that is killed with SIGKILL can do
// nothing any more. So on Linux there is a keeper between the host and the
// process:
//
//	host ── keeper ── process ── descendants
//
// The keeper is the host's own program, started again. It never reaches main: a
// package variable of this package takes over before. The keeper is a child
// subreaper. The kernel therefore hands it every descendant whose parent has
// ended, also one that called setsid, and the keeper kills them all.
//
// The host holds one end of a pipe to the keeper. The kernel closes it when the
// host dies, however it dies. The keeper then sends the process SIGTERM, and
// SIGKILL to everything after Grace. If the keeper itself is killed, the kernel
// kills the process (not its descendants), because SIGKILL is its parent-death
// signal.
//
// The keeper also holds the process to its Limits. What passes one is killed with all
// its descendants, and the error of its end names the limit.
//
// On other systems there is no keeper: the process leads a group, and its end and
// Kill end that group.
package leash

import "os"

// A Command says what to start. Path is used as it is; nothing is looked up.
type Command struct {
	Path    string
	File    *os.File // run instead of Path if not nil; only where CanRunFile
	Args    []string // with the name of the program first
	Env     []string // KEY=value; nothing else is passed on
	Dir     string   // working directory; "" = the host's
	Stdout  *os.File
	Stderr  *os.File
	Private string // directory that the keeper removes if the host dies; "" = none
	Limits  Limits
}

// Limits are what a process may take, together with all that it starts. A zero field
// means no limit. They hold on Linux only.
//
// They need no privilege and no cgroup, so they hold in a container, too. The keeper
// looks once a second, and sooner where the machine has many more threads or much less
// memory. A process can pass a limit between two looks: a limit protects the machine, it
// does not divide it exactly.
type Limits struct {
	Memory  int64 // bytes that are not those of files, what was swapped out included
	Threads int   // threads of all processes; a process has one at least
	Files   int   // open files of each process
}

// An ExitError says that a process ended in another way than with exit status 0.
type ExitError struct{ text string }

// Error is such as "exit status 3" or "signal: killed".
func (e *ExitError) Error() string { return e.text }
