//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// groupAttr makes the program the leader of its own process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
