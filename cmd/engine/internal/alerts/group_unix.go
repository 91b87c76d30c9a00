//go:build unix

package alerts

import (
	"errors"
	"os"
	"syscall"
)

// ownGroup starts a program in a process group of its own, so that all of it
// can be ended, and Ctrl-C does not reach it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the group that a program started with ownGroup leads.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
