package engines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// A workflow cannot read a file below /proc as a secret, also not through a link.
func TestSecretOfProcess(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc/self/environ", link); err != nil {
		t.Fatal(err)
	}
	a := &cli.App{}
	for _, path := range []string{"/proc/self/environ", "/proc/1/../self/environ", link} {
		if got, err := resolve(a, "file:"+path); got != "" || err == nil || !strings.Contains(err.Error(), "/proc") {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
}
