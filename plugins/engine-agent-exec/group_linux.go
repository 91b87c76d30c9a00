package main

import (
	"os"
	"syscall"
)

// groupAttr returns attributes for the start of the program. With them the program leads its
// own process group. The kernel kills the program if the thread that started it ends first.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
