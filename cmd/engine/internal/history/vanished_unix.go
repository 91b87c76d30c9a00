//go:build unix

package history

import (
	"errors"
	"syscall"
)

// running reports whether there is such a process, of any user.
func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
