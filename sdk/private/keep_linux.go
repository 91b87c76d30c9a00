package private

import (
	"fmt"
	"syscall"
)

// Keep prevents other processes of this user from reading the memory and environment of this
// process. The reason: steps run programs as the same user. Without Keep, such a program could read
// /proc/PID/environ. This file still contains an environment variable after os.Unsetenv. The
// setting is only for this process: the programs that it starts do not inherit it. Root can still
// read everything. After Keep, this process writes no core dumps, and only root can attach a
// debugger.
func Keep() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("keep the process private: %w", errno)
	}
	return nil
}
