//go:build unix

package procgroup

import (
	"errors"
	"os"
	"syscall"
)

// Own returns the attributes that start a program as the leader of a new process group.
func Own() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the program p and all other processes of its group, also after p itself has ended.
// The program must have been started with Own or OwnBound. The result is os.ErrProcessDone if all
// these processes have ended.
func Kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
