//go:build unix

package agents_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// hangs makes a call that is not answered, and waits for its complete-by.
func (w *world) hangs(spec invoke.AgentSpec, key string) {
	w.t.Helper()
	_, err := w.Invoke(w.t.Context(), call(spec, "call", `{"hang":true}`, func(c *invoke.Call) {
		c.Request.IdempotencyKey = key
		c.Request.CompleteBy = time.Now().Add(100 * time.Millisecond)
	}))
	if !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("a call that hangs: %v, want DeadlineExceeded", err)
	}
}

// TestSlowFarSideDrainsNone: a process whose calls expire is compared only with
// one that has answered since. Where none has, the far side is slow, and a
// replaced process would be as slow as the one before it (S69).
func TestSlowFarSideDrainsNone(t *testing.T) {
	w := newWorld(t, agents.Options{SlowAfter: 2, PingInterval: time.Hour})
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "two processes", func() bool { return len(w.started) == 2 })
	for n := range 4 {
		w.hangs(spec, fmt.Sprint(n))
	}
	for _, i := range w.instances("m") {
		if i.State != agents.InstanceReady || !i.Healthy {
			t.Errorf("status: %+v, want a process that is given calls", i)
		}
	}
	if n := len(w.pids()); n != 2 {
		t.Errorf("%d processes were started, want 2", n)
	}
}

// TestExpiredCallGivesItsSlotBack: what is not answered in time keeps no slot of
// max_concurrency, though its agent may still work on it.
func TestExpiredCallGivesItsSlotBack(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", func(s *invoke.AgentSpec) { s.MaxConcurrency = 1 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.hangs(spec, "hangs")
	if slot := w.Slot(spec); slot.Free != 1 {
		t.Errorf("slot=%+v, want 1 free", slot)
	}
	w.mustInvoke(call(spec, "echo", `{}`))
}

// TestProcessIsWhatWasDescribed: a binary that runs as another agent, or in
// another version, than it said when it was asked is not given calls.
func TestProcessIsWhatWasDescribed(t *testing.T) {
	real, err := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{filepath.Dir(mockBinary)}}}).Find(t.Context(), "mock", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{"mock": "77.0.0", "other": real.Version} {
		t.Run(name+" "+version, func(t *testing.T) {
			dir := t.TempDir()
			script(t, filepath.Join(dir, "engine-agent-"+name), description(name, version, plugin.ProtocolUnary), "exec '"+mockBinary+"'")
			w := newWorld(t, agents.Options{MinBackoff: time.Minute}, dir)
			spec := mock("m", func(s *invoke.AgentSpec) { s.Plugin = name })
			var start *plugin.StartError
			if err := w.Check(t.Context(), spec); !errors.As(err, &start) || start.Reason != plugin.ReasonDescription || !strings.Contains(err.Error(), "runs as mock "+real.Version) {
				t.Errorf("Check: %v, want that it runs as mock %s", err, real.Version)
			}
			_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
			mustDefer(t, err)
		})
	}
}

// TestShortLivesAreFollowedByPauses: a process that ends soon after its start is
// started again after a pause, which grows with each of them; one that lived for
// long is started again at once.
func TestShortLivesAreFollowedByPauses(t *testing.T) {
	kill := func(w *world, n int) {
		if err := syscall.Kill(w.pid(n), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		w.until(t, "its end", func() bool { return len(w.ended) == n+1 })
	}
	t.Run("short", func(t *testing.T) {
		w := newWorld(t, agents.Options{Stable: time.Hour, MinBackoff: time.Hour, MaxBackoff: 3 * time.Hour})
		for n, want := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour} {
			if err := w.Check(t.Context(), mock("m")); err != nil { // it waits for no pause
				t.Fatal(err)
			}
			kill(w, n)
			_, err := w.Invoke(t.Context(), call(mock("m"), "echo", `{}`))
			if left := time.Until(mustDefer(t, err).Until); left > want || left < want-30*time.Minute {
				t.Errorf("after life %d: next start in %s, want %s", n+1, left, want)
			}
		}
	})
	t.Run("long", func(t *testing.T) {
		w := newWorld(t, agents.Options{Stable: time.Nanosecond, MinBackoff: time.Hour, MaxBackoff: time.Hour})
		w.mustInvoke(call(mock("m"), "echo", `{}`))
		kill(w, 0)
		w.mustInvoke(call(mock("m"), "echo", `{}`))
	})
}

// TestPayloadLimitReachesTheProcess: an output that the engine takes is not
// refused by the agent's side for its size.
func TestPayloadLimitReachesTheProcess(t *testing.T) {
	ways(t, func(t *testing.T, o agents.Options) {
		o.PayloadLimit = 3 * plugin.DefaultPayloadLimit
		w := newWorld(t, o)
		if reply := w.mustInvoke(call(mock("m"), "big", `{"bytes":2097152}`)); reply.Outcome != sdk.OutcomeResult {
			reply.Output = nil
			t.Errorf("reply=%+v, want a result", reply)
		}
	})
}
