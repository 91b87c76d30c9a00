//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile waits until no other process has locked the file, and locks it. The lock ends when
// the file is closed or the process ends.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
