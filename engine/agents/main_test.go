package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// mockBinary is the mock agent, built once for all tests.
var mockBinary string

func TestMain(m *testing.M) {
	if dir := os.Getenv(engineMode); dir != "" {
		actEngine(dir)
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agents-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's temporary directory
	mockBinary = filepath.Join(dir, "engine-agent-mock")
	build := exec.Command("go", "build", "-o", mockBinary, "github.com/saga-engine/engine/plugins/engine-agent-mock")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the mock agent: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
