package main

import (
	"fmt"
	"syscall"
)

// keepPrivate keeps other processes of this user from reading this one: its
// memory, and the environment that it was started with, which the kernel shows in
// /proc/PID/environ whatever os.Unsetenv has removed. Steps run programs as the
// same user. A program that is started loses the setting, so agents and their
// children are as they were. Root can still read everything. There are no core
// dumps.
func keepPrivate() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("keep the process private: %w", errno)
	}
	return nil
}
