package main

import (
	"os"
	"syscall"
)

// groupAttr makes the program the leader of its own process group. It also asks the kernel
// to kill the program when this process ends without having killed it.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
