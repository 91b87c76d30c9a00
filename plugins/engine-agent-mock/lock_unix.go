//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile waits until no other process has locked the file, and locks it. Closing the
// file, or the end of the process, ends the lock.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
