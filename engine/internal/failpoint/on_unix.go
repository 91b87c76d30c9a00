//go:build failpoints && unix

package failpoint

import (
	"os"
	"syscall"
)

// die ends the process as kill -9 does, and does not return.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// freeze stops the process until SIGCONT.
func freeze() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
