// Package procs sets the number of processors that Go uses for an engine's process.
package procs

import (
	"os"
	"runtime"
)

// Spare makes Go use one processor more than Go chose, unless GOMAXPROCS is set in the
// environment. Why: Go's scheduler polls the network on a processor that has nothing else to
// run. While all processors are busy with decisions, an answer of the database waits for up to
// 10 ms, and every later commit waits with it. A spare processor can wait for the network in
// the operating system, which shares the CPUs fairly between all threads. Call Spare before
// anything else, because engines count processors when they start. After Spare, Go does not
// follow later changes of the container's CPU limit.
func Spare() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
