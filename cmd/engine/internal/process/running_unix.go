//go:build unix

package process

import (
	"errors"
	"syscall"
)

// running reports whether a process with this id exists. The process may belong to any user.
func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
