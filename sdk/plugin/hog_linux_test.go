package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/saga-engine/engine/sdk"
)

// family is a script that makes a tree of processes, each the parent of two, 2,000 in
// all. They do not stop to make more while their parents are killed.
const family = `t() { if [ $1 -gt 0 ]; then t $(($1-1)) & t $(($1-1)) & fi; sleep 60; }; t 10`

// orphans is a script that starts 500 processes which leave their group and session.
const orphans = `i=0; while [ $i -lt 500 ]; do setsid sh -c 'trap "" TERM HUP; sleep 60' & i=$((i+1)); done; sleep 60`

// grown is a child in a session of its own that takes 1 GiB.
const grown = `setsid sh -c 'x=0123456789abcdef; while [ ${#x} -lt 1000000000 ]; do x=$x$x; done; sleep 60'`

// T12: an agent that takes too much memory or too many processes is killed with all that
// it has started. Its calls end with agent_lost; they and its end name the limit.
func TestHogs(t *testing.T) {
	for _, c := range []struct{ name, action, input, limit string }{
		{"memory", "memory", `{"ms":1024}`, "agent_memory is 256 MiB"},
		{"memory of a child", "script", value(grown), "agent_memory is 256 MiB"},
		{"a tree of processes", "script", value(family), "agent_threads is 200"},
		{"processes that left their group", "script", value(orphans), "agent_threads is 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "mark") // in the environment of all its processes
			p := open(t, OpenOptions{MaxMemory: 256 << 20, MaxThreads: 200, Env: []string{"PATH=" + os.Getenv("PATH"), "MARK=" + mark}})
			reply := invoke(t, p, request(c.action, c.input))
			if reply.Code != sdk.CodeAgentLost || !strings.Contains(reply.Message, c.limit) {
				t.Errorf("the reply is %+v, want %s and %q", reply, sdk.CodeAgentLost, c.limit)
			}
			<-p.Done()
			if err := p.Err(); !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), c.limit) {
				t.Errorf("the process ended with %v, want %q", err, c.limit)
			}
			// The keeper has the variable, too. It ends after it has told of the end.
			for _, pid := range withVariable(t, "MARK="+mark) {
				awaitGone(t, "a process of the agent", pid, 10*time.Second)
			}
		})
	}
}

func value(text string) string { return fmt.Sprintf(`{"value":%q}`, text) }

// withVariable lists the processes that were started with a variable, but for those that
// have ended.
func withVariable(t *testing.T, variable string) (pids []int) {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		data, err := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && strings.Contains(string(data), variable) && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// T12: an agent that opens files without end gets an error, and lives.
func TestOpenFilesAreBounded(t *testing.T) {
	p := open(t, OpenOptions{MaxFiles: MinFiles})
	reply := invoke(t, p, request("files", `{}`))
	var n int
	if _, err := fmt.Sscanf(string(reply.Output), `{"pid":%d}`, &n); err != nil || n < 10 || n >= MinFiles {
		t.Errorf("the agent opened %s files (%v), want less than %d", reply.Output, err, MinFiles)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// T12: an agent that takes all CPU time is confined to half of the CPUs, and others are
// not. Where it has become calm it may use all again.
func TestBusyAgentIsConfined(t *testing.T) {
	all := cpus(t, os.Getpid())[0]
	half := max(1, all.Count()/2) // one CPU has no half
	busy, other := open(t, OpenOptions{}), open(t, OpenOptions{})
	ctx, calm := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = busy.Invoke(ctx, request("spin", `{}`), nil) // until it is cancelled
	}()
	await := func(what string, n int) {
		t.Helper()
		for limit := time.Now().Add(30 * time.Second); ; <-time.After(50 * time.Millisecond) {
			if !slices.ContainsFunc(cpus(t, busy.Pid()), func(c unix.CPUSet) bool { return c.Count() != n }) {
				return
			}
			if time.Now().After(limit) {
				t.Fatalf("the agent %s", what)
			}
		}
	}
	await("is not confined", half)
	for _, c := range cpus(t, other.Pid()) {
		if c != all {
			t.Errorf("a thread of the other agent may use %d CPUs only", c.Count())
		}
	}
	calm()
	<-done
	await("is not let free", all.Count())
}

// cpus are the CPUs that each thread of a process may use.
func cpus(t *testing.T, pid int) (sets []unix.CPUSet) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		var set unix.CPUSet
		if unix.SchedGetaffinity(id, &set) == nil { // else it has ended
			sets = append(sets, set)
		}
	}
	return sets
}
