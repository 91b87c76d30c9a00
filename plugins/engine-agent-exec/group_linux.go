package main

import (
	"os"
	"syscall"
)

// groupAttr starts the program as leader of its own group, and has the kernel
// kill it when this process dies without having been able to do that itself.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
