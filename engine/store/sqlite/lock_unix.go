//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openLock opens the lock file and locks it for this process. The kernel releases the lock
// when the process ends in any way. If another process has the lock, openLock returns
// errHeld and the open file.
func openLock(name, shown string) (*os.File, error) {
	// Opening a device file may have an effect, so the file is checked before it is opened.
	// It is checked again afterwards, because it may have been replaced in between.
	if info, err := os.Lstat(name); err == nil {
		if err := checkInfo(info, shown, true); err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|safeOpenFlags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = checkInfo(info, shown, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return f, errHeld
		default:
			return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
		}
	}
}
