package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxSource is the largest size, in bytes, of a file with values of variables, of a lock file, or
// of a source file of a module.
const MaxSource = 1 << 20

// errIrregular is the error for a pipe, a device or a directory.
var errIrregular = errors.New("not a regular file")

// Open opens a regular file to read it. Another user, or the author of the checkout, may have put a
// pipe or a device at this path. Opening a pipe would wait for ever, and opening a device may
// change something. So Open checks the type of the file before it opens the file. Between this
// check and the opening, the file may be replaced, for example by a pipe. So Open uses a flag with
// which the opening does not wait. It then checks the type of the opened file, too.
func Open(name string) (*os.File, error) {
	return openChecked(name, func() (fs.FileInfo, error) { return os.Stat(name) },
		func() (*os.File, error) { return os.OpenFile(name, os.O_RDONLY|dontWait, 0) })
}

func openChecked(name string, stat func() (fs.FileInfo, error), open func() (*os.File, error)) (*os.File, error) {
	info, err := stat()
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func regular(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: errIrregular}
}

// Read reads a regular file. The parameter `most` is the largest allowed size in bytes; for a
// larger file, Read returns an error.
func Read(name string, most int64) (data []byte, err error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: the file is larger than %d bytes", name, most)
	}
	return data, nil
}

// IsDir reports whether p names a directory.
func IsDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// A checkedFS is the file system of a module's directory. It opens only regular files, and lists
// directories. Links in the directory cannot lead out of the directory.
type checkedFS struct {
	rootFS
	root *os.Root
}

// rootFS has the methods of os.Root's file system that a module needs.
type rootFS interface {
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS
}

// NewFS returns a file system for a directory. It opens only regular files, and lists directories.
// Links in the directory cannot lead out of the directory.
func NewFS(root *os.Root) (fs.FS, error) {
	inner, ok := root.FS().(rootFS)
	if !ok {
		return nil, errors.New("this system cannot read a directory without leaving it")
	}
	return checkedFS{inner, root}, nil
}

// Open opens a regular file. For a directory it returns an error; ReadDir lists directories.
func (m checkedFS) Open(name string) (fs.File, error) {
	f, err := openChecked(name, func() (fs.FileInfo, error) { return m.Stat(name) },
		func() (*os.File, error) { return m.root.OpenFile(name, os.O_RDONLY|dontWait, 0) })
	if err != nil {
		return nil, err // a nil *os.File would not be a nil fs.File
	}
	return f, nil
}
