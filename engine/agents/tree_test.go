//go:build linux

package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// engineMode makes the test binary an engine whose agents are in the directory
// it names.
const engineMode = "AGENTS_TEST_ENGINE"

// treeScript runs a program with a child and a grandchild, and tells all their
// process ids.
const treeScript = `sh -c 'sleep 600 & echo $! $$ >> "$0"; sleep 600' "$0" & echo $$ >> "$0"; sleep 600`

// actEngine calls an agent whose command has children, and waits to be killed.
func actEngine(dir string) {
	pool := agents.NewPool(agents.Options{
		Catalog: agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}}),
	})
	spec := invoke.AgentSpec{Agent: &dsl.Agent{Name: "exec", Plugin: "exec", Instances: 2, Env: []string{"PATH"}}, Key: "exec"}
	input, err := json.Marshal(map[string]any{"argv": []string{"/bin/sh", "-c", treeScript, filepath.Join(dir, "pids")}})
	if err == nil {
		err = pool.Check(context.Background(), spec)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		reply, err := pool.Invoke(context.Background(), invoke.Call{Agent: spec, Request: sdk.Request{
			Action: "run", Purpose: sdk.PurposeDo, Input: input, IdempotencyKey: "k", Run: "r", Step: "s", Attempt: 1,
			CompleteBy: time.Now().Add(time.Minute),
		}})
		fmt.Println(reply, err) // never, in a good run
	}()
	for {
		var pids []int
		for _, a := range pool.Details() {
			for _, i := range a.Instances {
				if i.Pid != 0 {
					pids = append(pids, i.Pid)
				}
			}
		}
		if data, err := os.ReadFile(filepath.Join(dir, "pids")); err == nil && len(strings.Fields(string(data))) == 3 && len(pids) == 2 {
			fmt.Println(pids[0], pids[1], strings.Join(strings.Fields(string(data)), " "))
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	select {}
}

// build compiles a program of this module.
func build(t *testing.T, pkg, path string) {
	t.Helper()
	if out, err := exec.Command("go", "build", "-o", path, "github.com/saga-engine/engine/"+pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
}

// TestT13EngineKilled: two seconds after an engine was killed nothing is left of
// its agents, nor of what their commands had started.
func TestT13EngineKilled(t *testing.T) {
	dir := t.TempDir()
	build(t, "plugins/engine-agent-exec", filepath.Join(dir, "engine-agent-exec"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), engineMode+"="+dir, "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // should the test end early
	line, err := bufio.NewReader(out).ReadString('\n')
	var pids [5]int
	if n, scanErr := fmt.Sscan(line, &pids[0], &pids[1], &pids[2], &pids[3], &pids[4]); n != 5 {
		t.Fatalf("the engine said %q, %v, %v", line, err, scanErr)
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			if running(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	for _, pid := range pids {
		if !running(pid) {
			t.Fatalf("process %d of %v does not run", pid, pids)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()
	left := pids[:]
	for len(left) > 0 && time.Since(killed) < 2*time.Second {
		<-time.After(20 * time.Millisecond)
		var still []int
		for _, pid := range left {
			if running(pid) {
				still = append(still, pid)
			}
		}
		left = still
	}
	if len(left) > 0 {
		t.Errorf("2 s after the engine was killed %v of %v still run", left, pids)
	}
}

// running reports whether a process exists and is no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestS28LateAnswer: an agent that does not keep silent after complete-by is
// heard, as evidence: its call had ended without an answer.
func TestS28LateAnswer(t *testing.T) {
	dir := buildLate(t)
	ways(t, func(t *testing.T, o agents.Options) { testLateAnswer(t, o, dir) })
}

// buildLate builds the agent that answers too late, and returns its directory.
func buildLate(t *testing.T) string {
	dir := t.TempDir()
	build(t, "sdk/plugin/testdata/late", filepath.Join(dir, "engine-agent-late"))
	return dir
}

func testLateAnswer(t *testing.T, o agents.Options, dir string) {
	w := newWorld(t, o, dir)
	spec := mock("late", func(s *invoke.AgentSpec) { s.Plugin = "late" })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	heard := make(chan sdk.Reply, 10)
	c := call(spec, "answer", `{}`, func(c *invoke.Call) {
		c.Request.CompleteBy = time.Now().Add(200 * time.Millisecond)
		c.OnLate = func(r sdk.Reply) { heard <- r }
	})
	reply, err := w.Invoke(t.Context(), c)
	if !errors.Is(err, context.DeadlineExceeded) || reply.Outcome != sdk.OutcomeInvalid {
		t.Errorf("reply=%+v, %v, want DeadlineExceeded and none", reply, err)
	}
	if len(heard) != 0 {
		t.Error("heard before the call had ended")
	}
	if i := w.instances("late"); i[0].InFlight != 0 {
		t.Errorf("status: %+v, want no call under way", i)
	}
	select {
	case r := <-heard:
		if r.Outcome != sdk.OutcomeResult || string(r.Output) != `{"id":"too late"}` {
			t.Errorf("heard %+v", r)
		}
	case <-time.After(patience):
		t.Error("nothing was heard")
	}
}
