//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// groupAttr returns attributes for the start of the program. With them the program leads its
// own process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
