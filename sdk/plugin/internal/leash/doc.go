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
}

// An ExitError says that a process ended in another way than with exit status 0.
type ExitError struct{ text string }

// Error is such as "exit status 3" or "signal: killed".
func (e *ExitError) Error() string { return e.text }
