package engines

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("x"), maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own.key"), []byte("k3y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("own.key", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TOKEN": "t0ken", "ENGINE_ENCRYPTION_KEY": "k3y", "EMPTY": ""}
	a := &cli.App{Chdir: dir, Private: []string{filepath.Join(dir, "own.key")}, Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	for _, c := range []struct{ ref, want, err string }{
		{"env:TOKEN", "t0ken", ""},
		{"env:EMPTY", "", ""},
		{"env:NONE", "", "is not set"},
		{"env:ENGINE_ENCRYPTION_KEY", "", "do not get them"},
		{"env:ENGINE_DSN", "", "do not get them"},
		{"env:PGPASSWORD", "", "do not get them"},
		{"env:engine_dsn", "", "do not get them"},
		{"file:token", "s3cret", ""},
		{"file:none", "", "no such file"},
		{"file:own.key", "", "state and its key are not for workflows"},
		{"file:link", "", "state and its key are not for workflows"},
		{"file:/dev/zero", "", "not a regular file"},
		{"file:big", "", "larger than"},
		{"vault:x", "", "env:NAME or file:PATH"},
		{"env:", "", "env:NAME or file:PATH"},
	} {
		t.Run(c.ref, func(t *testing.T) {
			got, err := resolve(a, c.ref)
			if got != c.want {
				t.Errorf("secret = %q, want %q", got, c.want)
			}
			switch {
			case c.err == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want one with %q", err, c.err)
			case err != nil && strings.Contains(err.Error(), "k3y"):
				t.Error("the error tells a value")
			}
		})
	}
}
