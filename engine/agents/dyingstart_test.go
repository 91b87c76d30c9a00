//go:build unix

package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
)

// dying installs the mock agent so that its first processes are killed at their
// start, and returns the directory and a function that counts the starts.
func dying(t *testing.T, deaths int) (dir string, starts func() int) {
	t.Helper()
	dir = t.TempDir()
	log := filepath.Join(dir, "starts")
	text := fmt.Sprintf(`#!/bin/sh
if [ "$1" = describe ]; then exec '%[1]s' describe; fi
echo x >> '%[2]s'
if [ "$(wc -l < '%[2]s')" -le %[3]d ]; then kill -9 $$; fi
exec '%[1]s' "$@"
`, mockBinary, log, deaths)
	if err := os.WriteFile(filepath.Join(dir, "engine-agent-mock"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, func() int {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), "x")
	}
}

// An agent whose process is killed at its start is there all the same: a
// takeover that needs it at that moment starts another process, and sets no run
// aside. One that always ends at its start is no agent that can be called.
func TestProcessThatDiesAtItsStart(t *testing.T) {
	ways(t, func(t *testing.T, o agents.Options) {
		for _, c := range []struct {
			deaths, starts int
			fails          bool
		}{{0, 1, false}, {1, 2, false}, {3, 4, false}, {1000, 5, true}} {
			dir, starts := dying(t, c.deaths)
			o.Catalog = agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
			o.MinBackoff = time.Millisecond
			w := newWorld(t, o)
			err := w.Check(t.Context(), mock("m"))
			if (err != nil) != c.fails {
				t.Errorf("after %d deaths: Check = %v", c.deaths, err)
			}
			// After a check that failed, the pool goes on to start processes.
			if n := starts(); n < c.starts || n > c.starts && !c.fails {
				t.Errorf("after %d deaths: %d processes were started, want %d", c.deaths, n, c.starts)
			}
		}
	})
}

// The engine refuses further processes of the agent, because half of its limit is reached. This does
// not hide that the agent does not work: its one process always ends at its start.
func TestLimitHidesNoBrokenAgent(t *testing.T) {
	dir, _ := dying(t, 1000)
	w := newWorld(t, agents.Options{
		MaxProcesses: 2, MinBackoff: time.Minute, MaxBackoff: time.Minute,
		Catalog: agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}}),
	})
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2 })
	if err := w.Check(t.Context(), spec); err == nil || strings.Contains(err.Error(), "limit") {
		t.Errorf("Check = %v, want the error of the start", err)
	}
	if slot := w.Slot(spec); slot.Free != 0 || !slot.Down || strings.Contains(slot.Why, "limit") {
		t.Errorf("slot %+v, want the reason why the agent does not start", slot)
	}
}
