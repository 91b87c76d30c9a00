package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inherited opens a file as a shell leaves one behind: nothing keeps it from the
// processes that are started.
func inherited(t *testing.T) string {
	t.Helper()
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
	out, err := exec.Command("ls", "-l", fmt.Sprintf("/proc/self/fd/%d", fd)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), path) {
		t.Fatalf("a process of this one does not inherit the file, so the test proves nothing: %s, %v", out, err)
	}
	return path
}

// An agent sees no file that was open when the engine was started.
func TestAgentInheritsNothing(t *testing.T) {
	path := inherited(t)
	p := open(t, OpenOptions{})
	dir := fmt.Sprintf("/proc/%d/fd", p.Pid())
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 3 {
		t.Fatalf("%d open files, %v", len(files), err)
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && to == path {
			t.Errorf("the agent has %s open as %s", to, f.Name())
		}
	}
}

// Nor does one that is only asked what it can do.
func TestDescribeInheritsNothing(t *testing.T) {
	path := inherited(t)
	agent := filepath.Join(t.TempDir(), "engine-agent-list")
	list := filepath.Join(t.TempDir(), "list")
	script := "#!/bin/sh\nls -l /proc/$$/fd > " + list + "\n"
	if err := os.WriteFile(agent, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Describe(t.Context(), DescribeOptions{Path: agent}); err == nil {
		t.Fatal("a script that prints nothing was taken for an agent")
	}
	got, err := os.ReadFile(list)
	if err != nil || !strings.Contains(string(got), filepath.Base(agent)) { // the private copy
		t.Fatalf("list of open files %q, %v", got, err)
	}
	if strings.Contains(string(got), path) {
		t.Errorf("describe runs with %s open:\n%s", path, got)
	}
}
