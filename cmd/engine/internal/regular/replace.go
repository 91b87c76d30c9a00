package regular

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a new file and renames it to name. A crash leaves the old file or the
// new one, never a part.
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
	defer os.Remove(tmp.Name()) // removes the file after an error; after the rename it is not there any more
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
