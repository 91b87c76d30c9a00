//go:build unix

package agents_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

func TestInvoke(t *testing.T) {
	w := newWorld(t, agents.Options{})
	reply := w.mustInvoke(call(mock("m"), "echo", `{"value":{"n":12345678901234567890.5,"ok":true}}`))
	if reply.Outcome != sdk.OutcomeResult || string(reply.Output) != `{"value":{"n":12345678901234567890.5,"ok":true}}` {
		t.Errorf("reply=%+v", reply)
	}
	w.mustInvoke(call(mock("m"), "echo", `{}`))
	if pids := w.pids(); len(pids) != 1 {
		t.Errorf("%d processes for one spec, want 1", len(pids))
	}
}

// TestS31ErrorReplyAtOnce: a failure comes back long before complete-by, with
// its code and whether it is permanent; a reply that is too large, of another
// kind or to an action that does not exist is told from it (S35).
func TestS31ErrorReplyAtOnce(t *testing.T) {
	w := newWorld(t, agents.Options{})
	for name, tc := range map[string]struct {
		action, input string
		want          sdk.Reply
	}{
		"permanent": {"call", `{"fail":{"code":"card_declined","message":"no","permanent":true}}`, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "card_declined", Message: "no", Permanent: true}},
		"transient": {"call", `{"fail":{"retry_after":"3s"}}`, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "unavailable", Message: "as the script says", RetryAfter: 3 * time.Second}},
		"unknown":   {"call", `{"fail":{"unknown":true,"code":"unavailable","message":"who knows"}}`, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "unavailable", Message: "who knows"}},
		"S35 large": {"big", `{"bytes":2097152}`, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeBadReply}},
		"no action": {"fly", `{}`, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid, Permanent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			c := call(mock("m"), tc.action, tc.input)
			c.Request.IdempotencyKey = name
			got := w.mustInvoke(c)
			if tc.want.Message == "" {
				got.Message = ""
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
			if took := time.Since(start); took > patience/2 {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestS30Crash: a process that dies in the middle of a call makes its outcome
// unknown, nothing else; the next attempt starts another one, with the same
// idempotency key (S26), and the effect is there once.
func TestS30Crash(t *testing.T) { ways(t, testS30Crash) }

func testS30Crash(t *testing.T, o agents.Options) {
	o.MinBackoff = time.Millisecond
	path := filepath.Join(t.TempDir(), "ledger")
	w := newWorld(t, o)
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)))
	c := call(spec, "call", `{"crash":true,"times":1,"value":7}`)
	if reply := w.mustInvoke(c); reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAgentLost {
		t.Errorf("reply=%+v, want unknown agent_lost", reply)
	}
	w.until(t, "the end of the process", func() bool { return len(w.ended) == 1 })
	c.Request.Attempt = 2
	if reply := w.eventually(c); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != `{"value":7}` {
		t.Errorf("reply=%+v, want the result", reply)
	}
	w.until(t, "another process", func() bool { return len(w.started) == 2 })
	if pids := w.pids(); pids[0] == pids[1] {
		t.Errorf("processes %v, want two", pids)
	}
	kinds, applied := ledger(t, path)
	if kinds["arrived"] != 2 || len(applied) != 1 || applied["key"] != 1 {
		t.Errorf("ledger: %v, applied %v, want two arrivals and one effect", kinds, applied)
	}
}

// TestS28Hang: a call that is not answered ends at complete-by with an error
// and no reply, and the process goes on serving others.
func TestS28Hang(t *testing.T) { ways(t, testS28Hang) }

func testS28Hang(t *testing.T, o agents.Options) {
	w := newWorld(t, o)
	w.mustInvoke(call(mock("m"), "echo", `{}`))
	c := call(mock("m"), "call", `{"hang":true}`)
	c.Request.CompleteBy = time.Now().Add(300 * time.Millisecond)
	reply, err := w.Invoke(t.Context(), c)
	if !errors.Is(err, context.DeadlineExceeded) || reply.Outcome != sdk.OutcomeInvalid {
		t.Errorf("reply=%+v error=%v, want no reply and DeadlineExceeded", reply, err)
	}
	if time.Now().Before(c.Request.CompleteBy) {
		t.Error("given up before complete-by")
	}
	w.mustInvoke(call(mock("m"), "echo", `{}`))
	if pids := w.pids(); len(pids) != 1 {
		t.Errorf("%d processes, want the same one", len(pids))
	}
}

// TestNotSentInTime: past complete-by nothing is sent, and that is known.
func TestNotSentInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w := newWorld(t, agents.Options{})
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)))
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	c := call(spec, "call", `{}`)
	c.Request.CompleteBy = time.Now().Add(-time.Second)
	_, err := w.Invoke(t.Context(), c)
	mustDefer(t, err)
	if kinds, _ := ledger(t, path); len(kinds) > 0 {
		t.Errorf("ledger: %v, want nothing", kinds)
	}
}

// TestStop: a call that is not wanted any more is told so and still awaited;
// one whose context ends is not.
func TestStop(t *testing.T) { ways(t, testStop) }

func testStop(t *testing.T, o agents.Options) {
	w := newWorld(t, o)
	if err := w.Check(t.Context(), mock("m")); err != nil {
		t.Fatal(err)
	}
	beats := make(chan struct{}, 100)
	stop := make(chan struct{})
	start := time.Now()
	go func() {
		<-beats
		close(stop)
	}()
	reply := w.mustInvoke(call(mock("m"), "call", `{"latency":"15s"}`, func(c *invoke.Call) {
		c.Stop = stop
		c.OnProgress = func(invoke.Progress) {
			select {
			case beats <- struct{}{}:
			default: // nobody hears more of them
			}
		}
	}))
	if reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAborted || time.Since(start) > 10*time.Second {
		t.Fatalf("reply=%+v after %s, want the agent's aborted soon", reply, time.Since(start))
	}
	_, err := w.Invoke(t.Context(), call(mock("m"), "call", `{"latency":"15s"}`, func(c *invoke.Call) { c.Stop = stop }))
	if err != nil {
		mustDefer(t, err) // stopped before it was sent
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-beats
		cancel()
	}()
	_, err = w.Invoke(ctx, call(mock("m"), "call", `{"hang":true,"latency":"15s"}`, func(c *invoke.Call) {
		c.Request.IdempotencyKey = "other"
		c.Request.CompleteBy = time.Now().Add(5 * time.Second)
		c.Request.Input = []byte(`{"latency":"15s"}`)
		c.OnProgress = func(invoke.Progress) { beats <- struct{}{} }
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error=%v, want context.Canceled", err)
	}
}

// TestProgress: heartbeats arrive while the call runs and never afterwards.
func TestProgress(t *testing.T) {
	w := newWorld(t, agents.Options{})
	var mu sync.Mutex
	var notes []string
	over := false
	w.mustInvoke(call(mock("m"), "call", `{"latency":"350ms"}`, func(c *invoke.Call) {
		c.OnProgress = func(p invoke.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if over {
				t.Error("progress after the end")
			}
			notes = append(notes, p.Note)
		}
	}))
	mu.Lock()
	defer mu.Unlock()
	over = true
	if len(notes) == 0 || notes[0] != "waiting" {
		t.Errorf("notes=%q, want heartbeats", notes)
	}
}
