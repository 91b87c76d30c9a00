package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// T13: an engine that is killed while its agent starts leaves no agent behind:
// there is no control stream yet, so the kernel has to tell.
func TestStartingAgentEndsWithItsEngine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	path := script(t, fmt.Sprintf("echo $$ > %s.new; mv %s.new %s; exec sleep 600", file, file, file))
	engine := exec.Command(os.Args[0])
	engine.Env = append(os.Environ(), envMode+"=starting", "TMPDIR="+t.TempDir(), "AGENT="+path)
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Process.Kill() }) // should the test end early
	agent := 0
	for limit := time.Now().Add(20 * time.Second); agent == 0; <-time.After(10 * time.Millisecond) {
		if data, err := os.ReadFile(file); err == nil {
			if agent, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(limit) {
			t.Fatal("the agent does not start")
		}
	}
	if err := engine.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = engine.Wait()
	awaitGone(t, "the agent", agent, 10*time.Second)
}
