//go:build unix

package plugin

import (
	"os"
	"syscall"
)

// killOwnGroup kills the calling process and its children if it leads a process group. In a
// group that another process leads it does nothing.
func killOwnGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}
