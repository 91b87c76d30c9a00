package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SQLite follows symbolic links, and opens what it finds under the names that it
// makes from the file's: a link or a file that another user left there would let
// that user read the state, change it, or have another file overwritten. So the
// place is looked at before it is used.

// besides are the ends of the names of SQLite's own files.
var besides = []string{"", "-wal", "-shm", "-journal"}

// checkPlace refuses a place for the state that others could have prepared. A
// reader takes files of any owner: to look at another user's state is allowed.
// shown is how messages name the file.
func checkPlace(path, shown string, write bool) error {
	if write {
		if err := checkDirectory(filepath.Dir(path), filepath.Dir(shown)); err != nil {
			return err
		}
	}
	for _, end := range besides {
		info, err := os.Lstat(path + end)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := checkInfo(info, shown+end, write); err != nil {
			return err
		}
	}
	return nil
}

// checkDirectory refuses a directory in which others can replace files.
func checkDirectory(dir, shown string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if others := othersWrite(info); others != "" {
		return fmt.Errorf("%s can write the directory %s (mode %04o), so the state in it could be replaced: run `chmod go-w %s`, or name a file in another directory",
			others, shown, info.Mode().Perm(), shown)
	}
	return checkOwner(info, "the directory "+shown)
}

// checkInfo refuses what is not a regular file, and for writing a file of another
// user. info is that of the file, not of what a link leads to.
func checkInfo(info fs.FileInfo, shown string, write bool) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%w: %s", errLink, shown)
	case info.IsDir():
		return errDirectory
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s", errNotRegular, shown)
	case write:
		return checkOwner(info, shown)
	}
	return nil
}

// checkOwner refuses what belongs to a user who is neither this one nor root.
func checkOwner(info fs.FileInfo, shown string) error {
	if uid, other := foreign(info); other {
		return fmt.Errorf("%w: %s belongs to user %d: run the command as that user, or change the owner", errOwner, shown, uid)
	}
	return nil
}

var (
	errDirectory  = errors.New("it is a directory: name the file in it")
	errNotRegular = errors.New("it is not a regular file")
	errLink       = errors.New("it is a symbolic link, which is not followed: name the file that it leads to")
	errOwner      = errors.New("it belongs to another user")
)
