package leash

import (
	"os"
	"syscall"
)

// groupAttr puts a process into a new group, so that the process does not get the interrupts
// of a console.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the process, because Windows has no process groups.
func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
