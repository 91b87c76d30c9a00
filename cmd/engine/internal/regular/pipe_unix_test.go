//go:build unix

package regular

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in place of a file is refused, and does not block the command.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open = %v, want that it is not a regular file", err)
	}
}
