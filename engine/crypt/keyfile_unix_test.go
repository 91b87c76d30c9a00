//go:build unix

package crypt_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/saga-engine/engine/engine/crypt"
)

// A pipe in place of the key file is refused before it is opened. Opening it would block
// until a process writes to it.
func TestKeyFileIsRegular(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db.key")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := crypt.LoadOrCreateKeyFile(path); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("%v", err)
	}
}
