//go:build unix

package plugin

import (
	"os"
	"syscall"
)

// killGroup kills every process of the group that pid leads.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// killOwnGroup kills the calling process and its children, if it leads a group
// of its own; in somebody else's group it does nothing.
func killOwnGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}

// describeAttr starts a short-lived child in a process group of its own. It has
// no parent-death signal, because nobody keeps its thread.
func describeAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
