//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// groupAttr returns attributes for the start of a program. A program that was started with these
// attributes is the leader of its own process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
