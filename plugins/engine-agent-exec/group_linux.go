package main

import (
	"os"
	"syscall"
)

// groupAttr returns attributes for the start of a program. A program that was started with these
// attributes is the leader of its own process group. The kernel kills the program if the thread
// that started it ends first.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
