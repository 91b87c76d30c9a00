// Package procs decides on how many processors an engine's process has Go run it.
package procs

import (
	"os"
	"runtime"
)

// Spare asks for one processor more than Go chose, unless GOMAXPROCS is set in the
// environment. Go's scheduler looks at the network where a processor has nothing
// else to run: while all of them are busy deciding, an answer of the database waits
// for up to ten milliseconds, and with it everyone whose commit is next. A spare one
// waits there in the operating system, which shares the CPUs fairly. It is called
// first of all, since engines count processors when they start. From then on Go does
// not follow a CPU limit of its container that changes.
func Spare() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
