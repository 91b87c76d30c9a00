package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/store/naming"
)

// A lock reserves a state file for one process. The operating system releases the lock when
// the process ends in any way. The lock file stays on the disk, but without the lock it has
// no meaning.
type lock struct {
	f *os.File
}

var errHeld = errors.New("another process has the lock")

// takeLock locks the state in the file at path for this process. It returns a *sqlite.LockedError
// if another process has the lock. The parameter `shown` is the name of the file in errors.
func takeLock(path, shown string) (*lock, error) {
	f, err := openLock(path+".lock", shown+".lock")
	switch {
	case errors.Is(err, errHeld):
		return nil, errors.Join(&LockedError{Path: shown, Holder: holder(f)}, f.Close())
	case err != nil:
		return nil, err
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	return &lock{f}, nil
}

// sign writes into the lock file which process has the lock. Another process that cannot get the
// lock shows this text in its error. Of the command line, the function `sign` writes only the name
// of the program and the first argument, unless this argument begins with "-". Other arguments may
// contain secrets.
func sign(f *os.File) error {
	command := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		command += " " + os.Args[1]
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "process %d (%s), since %s\n", os.Getpid(), command, time.Now().UTC().Format(time.RFC3339)), 0)
	return err
}

func holder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 300))
	if who := strings.TrimSpace(string(text)); err == nil && who != "" {
		return naming.CleanText(who)
	}
	return "another process"
}

func (l *lock) release() error { return l.f.Close() }

// A LockedError says that an embedded store is open already, usually in another process.
type LockedError struct {
	Path   string
	Holder string // what is known about the process that has the store open; only for display
}

// Error returns a text with the name of the file and of the process.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s", e.Path, e.Holder)
}
