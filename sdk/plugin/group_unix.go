//go:build unix

package plugin

import (
	"os"
	"syscall"
)

// killOwnGroup kills all processes of this process's group, including this process. It does
// nothing if another process leads the group.
func killOwnGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}
