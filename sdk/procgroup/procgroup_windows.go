package procgroup

import (
	"os"
	"syscall"
)

// Own returns the attributes that start a program in a new group, which gets no interrupts of the
// console.
func Own() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Kill kills the program p. Its children may continue, because Windows cannot kill a group. The
// result is os.ErrProcessDone if p has ended.
func Kill(p *os.Process) error { return p.Kill() }
