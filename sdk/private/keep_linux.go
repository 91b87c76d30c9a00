package private

import (
	"fmt"
	"syscall"
)

// Keep keeps other processes of this user from reading this one. Steps run programs
// as the same user. They could read the memory of the process and the environment
// that it was started with: /proc/PID/environ still shows a variable after
// os.Unsetenv. The setting does not pass to programs that the process starts. Root
// can still read everything. The process writes no core dumps any more, and only
// root can attach a debugger.
func Keep() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("keep the process private: %w", errno)
	}
	return nil
}
