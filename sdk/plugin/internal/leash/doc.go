// Package leash starts a process and makes sure that all its descendants end, too. This
// happens when the process itself ends, when Kill is called, and when the host dies.
//
// It is not enough to send a signal of the operating system to a process group. A descendant
// can leave its group with setsid, and a process can ignore the signal. A host that is killed
// with SIGKILL cannot do anything any more. So on Linux there is a keeper between the host and
// the process:
//
//	host ── keeper ── process ── descendants
//
// The keeper is the host's own program, started again. It never reaches main, because the
// initialization of this package takes control before main begins. The keeper is a child
// subreaper: the kernel makes it the parent of every descendant whose parent has ended,
// even after setsid. The keeper kills all of them.
//
// The host holds one end of a pipe to the keeper. When the host dies in any way, the kernel
// closes that end. Then the keeper sends SIGTERM to the process, and after Grace SIGKILL to
// all processes. If the keeper itself is killed, the kernel kills the process (but not its
// descendants), because SIGKILL is the parent-death signal of the process.
//
// The keeper also enforces the Limits of the process. A process that exceeds the limit of memory or
// threads is killed with all its descendants, and its error names the limit.
//
// On other systems there is no keeper. There the process leads a process group. This package
// kills the group when the process has ended or Kill is called.
package leash

import "os"

// A Command says which process to start. Start uses Path unchanged and does not search in the
// directories of the variable PATH.
type Command struct {
	Path    string
	File    *os.File // open file to run instead of Path; nil = run Path; allowed only if CanRunFile
	Args    []string // arguments; the first is the name of the program
	Env     []string // environment, as KEY=value; no other variables are passed on
	Dir     string   // working directory; "" = the working directory of the host
	Stdout  *os.File
	Stderr  *os.File
	Private string // directory that the keeper removes if the host dies; "" = none
	Limits  Limits
}

// Limits are the limits for a process, including the processes that it starts. A zero field means
// no limit. The limits work on Linux only.
//
// The limits need no special rights and no cgroup, so they also work in a container. The kernel
// enforces the limit Files: a process that opens too many files gets an error. The keeper enforces
// the other two limits. It measures memory and threads once a second. It measures sooner if since
// the last measurement the number of threads on the machine has risen a lot, or the free memory of
// the machine has fallen a lot. Between two measurements, a process can exceed a limit. So a limit
// protects the machine, but it is not exact.
type Limits struct {
	// Memory is the largest memory of all processes together, in bytes. It includes swapped
	// memory, but not the pages of files.
	Memory  int64
	Threads int // largest number of threads of all processes together; each process has at least one
	Files   int // largest number of open files of each process
}

// An ExitError says that a process did not end with exit status 0.
type ExitError struct{ text string }

// Error returns a text such as "exit status 3" or "signal: killed".
func (e *ExitError) Error() string { return e.text }
