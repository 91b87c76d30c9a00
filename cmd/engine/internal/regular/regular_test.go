package regular

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Read takes regular files of a bounded size, and nothing else.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		most       int64
		want       string // "!" = an error with the rest
	}{
		{"small enough", file, 5, "12345"},
		{"too large", file, 4, "!larger than 4 bytes"},
		{"directory", dir, 5, "!not a regular file"},
		{"device", os.DevNull, 5, "!not a regular file"},
		{"none", filepath.Join(dir, "none"), 5, "!none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := Read(c.path, c.most)
			if text, refused := strings.CutPrefix(c.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), text) || data != nil {
					t.Errorf("%q, %v; want an error with %q and no data", data, err, text)
				}
				return
			}
			if err != nil || string(data) != c.want {
				t.Errorf("%q, %v; want %q", data, err, c.want)
			}
		})
	}
}

// The file system of a module reads its files, and no link leads out of it.
func TestNewFS(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(outside, "secret"): "s3cret", filepath.Join(dir, "a.hcl"): "inside"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "out.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.hcl", filepath.Join(dir, "in.hcl")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files, err := NewFS(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.hcl", "in.hcl"} {
		if data, err := fs.ReadFile(files, name); err != nil || string(data) != "inside" {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	if data, err := fs.ReadFile(files, "out.hcl"); err == nil || data != nil {
		t.Errorf("a link led out of the directory: %q", data)
	}
}

// A replaced file keeps its permissions, and no other file stays behind.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "fresh")
	if err := os.WriteFile(old, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]fs.FileMode{old: 0o600, fresh: 0o644} {
		if err := Replace(path, []byte("after")); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != "after" {
			t.Errorf("%s holds %q, %v", path, data, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the permissions %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v; want the two files", entries, err)
	}
	if err := Replace(filepath.Join(dir, "none", "x"), nil); err == nil {
		t.Error("a file in a directory that does not exist was replaced")
	}
	if !IsDir(dir) || IsDir(old) || IsDir(filepath.Join(dir, "none")) {
		t.Error("IsDir takes a file for a directory, or the other way round")
	}
}
