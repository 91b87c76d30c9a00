package main

import (
	"fmt"
	"syscall"
)

// keepPrivate keeps other processes of this user from reading this one. Steps run
// programs as the same user. They could read the memory of the engine and the
// environment that it was started with: /proc/PID/environ still shows a variable
// after os.Unsetenv. The setting does not pass to programs that the engine starts,
// so agents are not private. Root can still read everything. The engine writes no
// core dumps any more.
func keepPrivate() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("keep the process private: %w", errno)
	}
	return nil
}
