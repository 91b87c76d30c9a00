package alerts

import (
	"os"
	"syscall"
)

// ownGroup starts a program in a process group of its own, so that Ctrl-C does
// not reach it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the program; Windows has no groups to kill.
func killGroup(p *os.Process) error { return p.Kill() }
