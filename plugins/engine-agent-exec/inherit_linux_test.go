package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/saga-engine/engine/sdk"
)

// A program sees no file that was open when its agent was started: a shell, say,
// leaves such files behind.
func TestProgramInheritsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inherited")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	})
	reply := invoke(t, "run", in{"argv": []string{"ls", "-l", "/proc/self/fd"}})
	var out struct{ Stdout string }
	if err := json.Unmarshal(reply.Output, &out); reply.Outcome != sdk.OutcomeResult || err != nil {
		t.Fatalf("reply %+v, %v", reply, err)
	}
	if !strings.Contains(out.Stdout, " 2 -> ") || strings.Contains(out.Stdout, path) {
		t.Errorf("the program has open:\n%s", out.Stdout)
	}
}
