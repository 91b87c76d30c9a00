package regular

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces the content of the file name. It writes a new file and renames it. After a
// crash, the file has its old content or its new content, never a part.
func Replace(name string, data []byte) error {
	info, err := os.Stat(name)
	mode := fs.FileMode(0o644)
	if err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".engine-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after an error it removes the new file; after the rename that file has another name
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Chmod(mode)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}
