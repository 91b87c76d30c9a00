package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SQLite follows symbolic links. It also opens existing files whose names it makes from the
// name of the state file. Another user could create such a link or file in order to read or
// change the state, or to make this user overwrite another file. So the directory and the
// files are checked before they are used.

// fileEndings holds endings of file names. The empty ending is for the state file itself. The other
// endings are for the files that SQLite creates next to it.
var fileEndings = []string{"", "-wal", "-shm", "-journal"}

// checkFiles returns an error if other users could have prepared the files at path, or can
// replace them. If `write` is false, checkFiles accepts files of any owner in any directory,
// because a user may read another user's state. The parameter `shown` is the name of the file
// in errors.
func checkFiles(path, shown string, write bool) error {
	if write {
		if err := checkDirectory(filepath.Dir(path), filepath.Dir(shown)); err != nil {
			return err
		}
	}
	for _, end := range fileEndings {
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

// checkDirectory returns an error if other users can replace files in a directory.
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

// checkInfo returns an error if a file is not regular. If `write` is true, it also returns an error
// if the file belongs to another user, except root. The parameter `info` must describe the file
// itself, and not the target of a symbolic link. The parameter `shown` is the file's name in
// errors.
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

// checkOwner returns an error if a file belongs to a user who is neither this user nor
// root.
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
