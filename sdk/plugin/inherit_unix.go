//go:build unix

package plugin

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// CloseOnExec marks every open file of this process above standard error, so that
// processes it starts do not inherit them. Go marks the files that it opens itself.
// CloseOnExec is for files that were open before. Examples are a lock file, or a script
// that the shell had open when it started this process. Open and Describe call it before
// each start. An agent that starts programs should call it too. Files in
// exec.Cmd.ExtraFiles are still inherited.
//
// It returns an error if the open files cannot be listed. On a system whose /dev/fd lists
// only the standard files, other files stay unmarked.
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
		// A file that is closed meanwhile needs no mark. A file that Go opens with the same
		// number has the mark already.
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
