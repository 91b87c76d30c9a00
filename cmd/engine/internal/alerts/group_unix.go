//go:build unix

package alerts

import (
	"errors"
	"os"
	"syscall"
)

// ownGroup returns the attributes that start a program in a process group of its own. Then
// killGroup can end the program with its children, and a Ctrl-C for the engine does not reach the
// program.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the program p and its children. The program must have been started with
// ownGroup. The result is os.ErrProcessDone if all these processes have ended already.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
