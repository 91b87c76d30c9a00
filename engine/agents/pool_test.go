//go:build unix

package agents_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// TestS27TwoAgentsOneBinary: two agent blocks of one plugin are two agents, with
// their own configuration and their own breaker.
func TestS27TwoAgentsOneBinary(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, agents.Options{})
	paths := map[string]string{"east": filepath.Join(dir, "east"), "west": filepath.Join(dir, "west")}
	for name, path := range paths {
		spec := mock(name, config(fmt.Sprintf(`{"ledger":%q}`, path)), breaker(dsl.Breaker{TripAfter: 1, Cooldown: time.Hour}))
		w.mustInvoke(call(spec, "call", `{}`, func(c *invoke.Call) { c.Request.IdempotencyKey = name }))
	}
	for name, path := range paths {
		if _, applied := ledger(t, path); applied[name] != 1 || len(applied) != 1 {
			t.Errorf("%s: applied %v, want its own effect only", name, applied)
		}
	}
	w.mustInvoke(call(mock("east"), "call", `{"fail":{}}`))
	_, err := w.Invoke(t.Context(), call(mock("east"), "call", `{}`))
	mustDefer(t, err)
	w.mustInvoke(call(mock("west"), "call", `{}`))
	w.until(t, "two processes", func() bool { return len(w.started) >= 2 })
	if pids := w.pids(); len(pids) != 2 {
		t.Errorf("%d processes, want 2", len(pids))
	}
}

// TestS33Instances: several processes of one agent; calls go to the one with
// the most free capacity, and one that dies takes only its own with it (S69,
// S70).
func TestS33Instances(t *testing.T) {
	w := newWorld(t, agents.Options{MinBackoff: time.Millisecond})
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 3 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "three processes", func() bool { return len(w.started) == 3 })
	replies := make(chan sdk.Reply, 3)
	beating := make(chan int, 1000)
	for n := range 3 {
		go func() {
			reply, err := w.Invoke(t.Context(), call(spec, "call_once", `{"latency":"2s"}`, func(c *invoke.Call) {
				c.Request.IdempotencyKey = fmt.Sprint(n)
				c.OnProgress = func(invoke.Progress) { beating <- n }
			}))
			if err != nil {
				t.Error(err)
			}
			replies <- reply
		}()
	}
	seen := map[int]bool{}
	for len(seen) < 3 {
		select {
		case n := <-beating:
			seen[n] = true
		case <-time.After(patience):
			t.Fatalf("calls under way: %v", seen)
		}
	}
	if err := syscall.Kill(w.pid(1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for range 3 {
		reply := <-replies
		outcomes[reply.Code]++
	}
	if outcomes[sdk.CodeAgentLost] != 1 || outcomes[""] != 2 {
		t.Errorf("outcomes by code: %v, want one lost and two results: one call on each process", outcomes)
	}
	w.eventually(call(spec, "echo", `{}`))
	w.until(t, "the fourth process", func() bool { return len(w.started) == 4 })
}

// TestRestartBackoff: the pause before the next start grows while starts fail,
// and a call that waits for nothing is told until when.
func TestRestartBackoff(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "engine-agent-bad"), description("bad", "1.0.0", 1), "exit 1")
	w := newWorld(t, agents.Options{MinBackoff: 100 * time.Millisecond, MaxBackoff: 350 * time.Millisecond}, dir)
	spec := mock("bad", func(s *invoke.AgentSpec) { s.Plugin = "bad" })
	for n, want := range []time.Duration{100, 200, 350, 350} {
		want *= time.Millisecond
		_, err := w.Invoke(t.Context(), call(spec, "go", `{}`))
		d := mustDefer(t, err)
		if left := time.Until(d.Until); left > want || left < want-90*time.Millisecond {
			t.Errorf("start %d: next in %s, want %s", n+1, left, want)
		}
		_, err = w.Invoke(t.Context(), call(spec, "go", `{}`))
		if again := mustDefer(t, err); !again.Until.Equal(d.Until) {
			t.Errorf("start %d: was tried before its time", n+1)
		}
		before := 0
		w.until(t, "the pause", func() bool { before = w.freed; return w.freed > n })
		if before != n+1 {
			t.Errorf("%d times freed, want %d", before, n+1)
		}
	}
}

func TestConcurrencyLimit(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", func(s *invoke.AgentSpec) { s.MaxConcurrency = 2 })
	if slot := w.Slot(spec); slot.Free != 2 || slot.Why != "" {
		t.Errorf("slot=%+v, want 2 free", slot)
	}
	if w.Reserve(spec, 3) {
		t.Error("3 of 2 slots were reserved")
	}
	for n, want := range []bool{true, true, false} {
		if got := w.Reserve(spec, 1); got != want {
			t.Errorf("reservation %d: got %t, want %t", n+1, got, want)
		}
	}
	if slot := w.Slot(spec); slot.Free != 0 || slot.Why != "full" {
		t.Errorf("slot=%+v, want full", slot)
	}
	w.Release(spec, 1)
	w.until(t, "a free slot", func() bool { return w.freed == 1 })
	if slot := w.Slot(spec); slot.Free != 1 {
		t.Errorf("slot=%+v, want 1 free", slot)
	}
	w.Release(spec, 1)

	// Calls that reserved nothing are counted all the same.
	under := make(chan struct{}, 100)
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			w.mustInvoke(call(spec, "call_once", `{"latency":"1s"}`, func(c *invoke.Call) {
				c.Request.IdempotencyKey = fmt.Sprint(n)
				first := sync.OnceFunc(func() { under <- struct{}{} })
				c.OnProgress = func(invoke.Progress) { first() }
			}))
		})
	}
	<-under
	<-under
	_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
	if d := mustDefer(t, err); d.Why != "full" {
		t.Errorf("deferred: %+v, want full", d)
	}
	wg.Wait()
	w.mustInvoke(call(spec, "echo", `{}`))
	if slot := w.Slot(mock("free")); slot.Free < 1000 {
		t.Errorf("slot=%+v, want no limit without max_concurrency", slot)
	}
}

// TestFrozenProcess: a process that gives no sign of life is killed, so that its
// calls end and another one starts.
func TestFrozenProcess(t *testing.T) {
	w := newWorld(t, agents.Options{PingInterval: 50 * time.Millisecond, PingTimeout: 300 * time.Millisecond, MinBackoff: time.Millisecond})
	if err := w.Check(t.Context(), mock("m")); err != nil {
		t.Fatal(err)
	}
	w.freeze(w.pid(0))
	reply := w.mustInvoke(call(mock("m"), "echo", `{}`))
	if reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAgentLost {
		t.Errorf("reply=%+v, want unknown agent_lost", reply)
	}
	w.until(t, "the end of the process", func() bool { return len(w.ended) == 1 })
	w.eventually(call(mock("m"), "echo", `{}`))
}

// TestClose: no process outlives Close, not even one that hangs; calls under way
// end as unknown, later ones are deferred.
func TestClose(t *testing.T) {
	w := newWorld(t, agents.Options{CloseGrace: 500 * time.Millisecond})
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "two processes", func() bool { return len(w.started) == 2 })
	w.freeze(w.pid(0))
	done := make(chan sdk.Reply, 4)
	for n := range 4 {
		go func() {
			reply, err := w.Invoke(context.WithoutCancel(t.Context()), call(spec, "call", `{"hang":true}`, func(c *invoke.Call) {
				c.Request.IdempotencyKey = fmt.Sprint(n)
			}))
			if err != nil {
				mustDefer(t, err)
			}
			done <- reply
		}()
	}
	start := time.Now()
	w.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Close took %s", took)
	}
	for range 4 {
		if reply := <-done; reply.Outcome != sdk.OutcomeInvalid && reply.Outcome != sdk.OutcomeUnknown {
			t.Errorf("reply=%+v", reply)
		}
	}
	for _, pid := range w.pids() {
		if alive(pid) {
			t.Errorf("process %d is alive after Close", pid)
		}
	}
	_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
	mustDefer(t, err)
	if err := w.Check(t.Context(), spec); err == nil {
		t.Error("Check starts a process after Close")
	}
	if w.Reserve(spec, 1) || w.Slot(spec).Free > 0 {
		t.Error("there are slots after Close")
	}
	w.Close()
}
