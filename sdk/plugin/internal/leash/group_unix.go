//go:build unix && !linux

package leash

import "syscall"

// groupAttr makes a process the leader of its own process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills every process of the group that pid leads.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
