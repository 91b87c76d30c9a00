//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile waits until no other process holds the file. Closing it, or the end
// of the process, gives it free.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
