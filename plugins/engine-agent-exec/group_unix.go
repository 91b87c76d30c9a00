//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// groupAttr starts the program as leader of its own group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
