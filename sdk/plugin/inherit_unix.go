//go:build unix

package plugin

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// CloseOnExec makes sure that programs which this process starts do not inherit its open files,
// except standard input, output and error. It sets the flag close-on-exec of each file. Go sets
// this flag for the files that it opens itself. CloseOnExec is for files that were open before
// this process started: for example a lock file or a script that the shell had open. Open and
// Describe call CloseOnExec before each start. An agent that starts programs should call it too.
// Programs still inherit the files in exec.Cmd.ExtraFiles.
//
// CloseOnExec returns an error if it cannot list the open files. On a system whose /dev/fd
// lists only the standard files, it does not find the other files.
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
		// If the file was closed meanwhile, syscall.CloseOnExec does nothing. If Go then opened
		// another file with the same number, Go has already set close-on-exec for that file.
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
