package crypt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadOrCreateKeyFile returns the keys in the file with the given path. ParseKeys reads the text of
// the file, and the first key is the one that seals. If there is no file, LoadOrCreateKeyFile makes
// a key and writes it to a new file with mode 0600. If two processes do this at the same time, both
// use the key of the process that was first, because the file gets its name only when it is
// complete. LoadOrCreateKeyFile refuses a file for which the group or other users have any
// permission.
func LoadOrCreateKeyFile(path string) ([]Key, error) {
	keys, err := loadKeyFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	if err := createKeyFile(path, key); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return loadKeyFile(path)
}

func loadKeyFile(path string) ([]Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a named pipe would wait for a writer
		return nil, fmt.Errorf("key file %s is not a regular file: move it away, and restore the key", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read key file %s (mode %04o): run chmod 600 on it, and assume that they know the key", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	keys, err := ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("key file %s is damaged: %w", path, err)
	}
	return keys, nil
}

// createKeyFile writes the key to a temporary file, and flushes this file to the disk. Then it
// makes a hard link, so that the file also has the name in the parameter `path`. It returns an
// error if a file with this name exists already.
func createKeyFile(path string, key Key) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("create the key file: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(key.Text() + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("create the key file: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flush the key file's directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("flush the key file's directory: %w", err)
	}
	return nil
}
