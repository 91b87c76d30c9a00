//go:build unix

package procgroup

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Kill ends the program and the program that it has started: nothing holds the pipe any more.
// It works after the leader of the group has ended, too, and says when nothing is left.
func TestKillGroup(t *testing.T) {
	for name, script := range map[string]string{
		"leader runs":      "sleep 100 & echo started; wait",
		"leader has ended": "sleep 100 & echo started",
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", script)
			cmd.Stdout, cmd.SysProcAttr = w, OwnBound()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			lines := bufio.NewReader(r)
			if line, err := lines.ReadString('\n'); err != nil || line != "started\n" {
				t.Fatalf("read %q, %v", line, err)
			}
			if name == "leader has ended" {
				if err := cmd.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if err := Kill(cmd.Process); err != nil {
				t.Errorf("Kill = %v", err)
			}
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
				t.Errorf("then %q, %v", rest, err)
			}
			if name == "leader runs" {
				if err := cmd.Wait(); err == nil {
					t.Error("the leader ended well")
				}
			}
		})
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = Own()
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := Kill(cmd.Process); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Kill of an ended group = %v", err)
	}
}
