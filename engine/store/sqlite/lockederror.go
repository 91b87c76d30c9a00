package sqlite

import "fmt"

// A LockedError says that another process has an embedded store open.
type LockedError struct {
	Path   string
	Holder string // what is known about that process; only for display
}

// Error returns a text with the name of the file and of the process.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s", e.Path, e.Holder)
}
