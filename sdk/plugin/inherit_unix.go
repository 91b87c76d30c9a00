//go:build unix

package plugin

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// CloseOnExec marks every open file of this process above standard error, so
// that a process it starts gets none of them. Go marks what it opens by itself;
// this is for what was open before, such as a script of the shell that started
// the process, or a lock. Open and Describe call it before each start; an agent
// that starts programs calls it too. What exec.Cmd passes in ExtraFiles is passed
// all the same.
//
// The error is that the open files could not be listed. Systems whose /dev/fd
// lists the standard ones only keep the others unmarked.
func CloseOnExec() error {
	dir := "/dev/fd"
	if runtime.GOOS == "linux" {
		dir = "/proc/self/fd"
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("plugin: list open files: %w", err)
	}
	for _, f := range files {
		// One that is closed meanwhile needs no mark; one that took its number is
		// Go's and has it.
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
