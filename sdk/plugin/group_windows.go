package plugin

import (
	"os"
	"syscall"
)

func agentAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// awaitExit returns false: there is no waiting without reaping here.
func awaitExit(int) bool { return false }

// killGroup kills the process; Windows has no groups to kill.
func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func killOwnGroup() {}

func describeAttr() *syscall.SysProcAttr { return agentAttr() }
