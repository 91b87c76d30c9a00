package private

import (
	"fmt"
	"syscall"
)

// Keep prevents other processes of this user from reading this one. The reason: steps run
// programs as the same user. These could read the memory of the process and the environment
// with which it was started; /proc/PID/environ still shows a variable after os.Unsetenv.
// Programs that the process starts do not inherit the setting. Root can still read
// everything. The process writes no core dumps any more, and only root can attach a
// debugger.
func Keep() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("keep the process private: %w", errno)
	}
	return nil
}
