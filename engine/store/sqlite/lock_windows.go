package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// sharingViolation is ERROR_SHARING_VIOLATION: another process has the file open and does
// not allow others to write it.
const sharingViolation = syscall.Errno(32)

// openLock opens the file that locks the state, so that no other process can open it for writing
// until this process closes the file or ends. If another process has this file open, openLock opens
// it only for reading, and returns the file and errHeld. The parameter `shown` is the name of the
// file in errors.
func openLock(name, shown string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil {
		if err := checkInfo(info, shown, true); err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == nil {
		return os.NewFile(uintptr(h), name), nil
	}
	if !errors.Is(err, sharingViolation) {
		return nil, fmt.Errorf("lock: %w", err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return f, errHeld
}
