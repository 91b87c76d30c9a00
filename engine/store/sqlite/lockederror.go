package sqlite

import "fmt"

// A LockedError says that another process holds an embedded store.
type LockedError struct {
	Path   string
	Holder string // what is known of the holder, for people
}

// Error names the file and its holder.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s", e.Path, e.Holder)
}
