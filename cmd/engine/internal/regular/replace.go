package regular

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces the content of the file at the path `name`. It writes a new file, and then gives
// it this path. After a crash of the process, the file has its complete old content or its complete
// new content. Replace does not protect against a power failure, because it does not wait until the
// content is on the disk.
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
	// If Replace fails, this removes the new file. After the rename it does nothing, because no
	// file has the temporary name any more.
	defer os.Remove(tmp.Name())
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
